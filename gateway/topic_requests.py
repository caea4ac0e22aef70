"""What the topic APIs share: which topic a request means, and whether its caller may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.api import RequestContext
from gateway.topics.topic_catalogue import PartitionKey, TopicCatalogue, TopicDataError
from model.commands import Command
from model.errors import ErrorCode
from model.ids import TopicId
from model.topics import Topic, TopicImage

Result = TypeVar("Result")


class TopicRef(NamedTuple):
    """The topic that a request means, or why it cannot have it."""

    topic: Topic | None
    error: ErrorCode


def is_allowed(context: RequestContext, operation: Operation, topic: str) -> bool:
    """Whether the caller may do ``operation`` on the topic of this name."""
    return context.authorized(operation, ResourceType.TOPIC, topic)


def find_topic_by_name(
    context: RequestContext, image: TopicImage, name: Any, operation: Operation
) -> TopicRef:
    """A topic by name: who may not, does not learn whether it is there."""
    if not is_allowed(context, operation, name):
        return TopicRef(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = image.by_name.get(name)
    if topic is None:
        return TopicRef(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return TopicRef(topic, ErrorCode.NONE)


def find_topic_by_id(
    context: RequestContext, image: TopicImage, topic_id: bytes | None, operation: Operation
) -> TopicRef:
    """A topic by id, which only who knows it can name."""
    topic = image.by_id.get(TopicId(topic_id)) if topic_id is not None else None
    if topic is None:
        return TopicRef(None, ErrorCode.UNKNOWN_TOPIC_ID)
    if not is_allowed(context, operation, topic.name):
        return TopicRef(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return TopicRef(topic, ErrorCode.NONE)


def check_partition(topics: TopicCatalogue, ref: TopicRef, partition: int) -> PartitionKey:
    """The partition, which this server leads; raises ``TopicDataError``."""
    if ref.topic is None:
        raise TopicDataError(ref.error, "the topic is not there, or not for this client")
    if not 0 <= partition < ref.topic.partitions:
        raise TopicDataError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {ref.topic.name} has partitions 0 to {ref.topic.partitions - 1}",
        )
    key = PartitionKey(ref.topic.topic_id, partition)
    if topics.leader_of(key).node_id is not None:
        raise TopicDataError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another server leads the partition")
    return key


def check_leader_epoch(topics: TopicCatalogue, key: PartitionKey, epoch: int) -> None:
    """Raises ``TopicDataError`` where the client knows another leader than there is."""
    known = topics.leader_of(key).epoch
    if epoch > known:
        raise TopicDataError(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"the leader epoch is {known}, not yet {epoch}"
        )
    if epoch < known:
        raise TopicDataError(
            ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {known}, no more {epoch}"
        )


def compute_error_for_version(error: int, by_id: bool) -> int:
    """A partition that went away meanwhile, in the words of a request by id or by name."""
    if error == ErrorCode.UNKNOWN_TOPIC_ID and not by_id:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return error


def find_duplicates(names: Iterable[Result]) -> set[Result]:
    """Those that come more than once. Cheap where none do, however many there are."""
    counts = Counter(names)
    if len(counts) == counts.total():
        return set()
    return {name for name, count in counts.items() if count > 1}


class Gather(Generic[Result]):
    """Results of several commands, in their order, and one call when all are there.

    A slot is filled at once with ``add``, later by the answer to a command with ``submit``, or by
    whoever has asked for it with ``begin``.
    """

    def __init__(
        self, context: RequestContext, on_done: Callable[[Sequence[Result]], None]
    ) -> None:
        self._context = context
        self._on_done = on_done
        self._results: list[Any] = []
        self._missing = 1

    def add(self, result: Result) -> None:
        """A result that is known already."""
        self._results.append(result)

    def submit(self, command: Command, to_result: Callable[[Answer], Result]) -> None:
        """A result that the answer to ``command`` gives."""
        fill = self.begin()
        self._context.submit(command, lambda answer: fill(to_result(answer)))

    def begin(self) -> Callable[[Result], None]:
        """A slot that is filled by calling what this returns."""
        number = len(self._results)
        self._results.append(None)
        self._missing += 1

        def fill(result: Result) -> None:
            self._results[number] = result
            self.close()

        return fill

    def close(self) -> None:
        """No more slots come; also what each answer counts down."""
        self._missing -= 1
        if not self._missing:
            self._on_done(self._results)
