"""Helpers of the topic APIs: topic lookup with authorization, leader checks, result gathering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from coordinator.runtime.api import Answer
from gateway.api import RequestContext
from gateway.topics.topic_catalogue import PartitionKey, TopicCatalogue, TopicDataError
from model.access.acls import Operation, ResourceType
from model.commands.command import Command
from model.errors import ErrorCode
from model.ids import TopicId
from model.topics import Topic, TopicImage

Result = TypeVar("Result")


class TopicRef(NamedTuple):
    """A topic that a request refers to, or the error that it gets instead."""

    topic: Topic | None
    error: ErrorCode


def is_allowed(context: RequestContext, operation: Operation, topic: str) -> bool:
    """Whether the caller may perform ``operation`` on the topic of this name."""
    return context.authorized(operation, ResourceType.TOPIC, topic)


def find_topic_by_name(
    context: RequestContext, image: TopicImage, name: Any, operation: Operation | None
) -> TopicRef:
    """Look a topic up by name; an unauthorized caller does not learn whether it exists.

    Without an ``operation`` no right is needed.
    """
    if operation is not None and not is_allowed(context, operation, name):
        return TopicRef(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = image.by_name.get(name)
    if topic is None:
        return TopicRef(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return TopicRef(topic, ErrorCode.NONE)


def find_topic_by_id(
    context: RequestContext, image: TopicImage, topic_id: bytes | None, operation: Operation | None
) -> TopicRef:
    """Look a topic up by id; existence is no secret from a caller that knows the id.

    Without an ``operation`` no right is needed.
    """
    topic = image.by_id.get(TopicId(topic_id)) if topic_id is not None else None
    if topic is None:
        return TopicRef(None, ErrorCode.UNKNOWN_TOPIC_ID)
    if operation is not None and not is_allowed(context, operation, topic.name):
        return TopicRef(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return TopicRef(topic, ErrorCode.NONE)


def check_partition(topics: TopicCatalogue, ref: TopicRef, partition: int) -> PartitionKey:
    """The key of a partition that this server leads; raises ``TopicDataError`` otherwise."""
    if ref.topic is None:
        raise TopicDataError(ref.error, "The topic does not exist or the client is not authorized.")
    if not 0 <= partition < ref.topic.partitions:
        raise TopicDataError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic {ref.topic.name} has partitions 0 to {ref.topic.partitions - 1}.",
        )
    key = PartitionKey(ref.topic.topic_id, partition)
    if topics.leader_of(key).node_id is not None:
        raise TopicDataError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "Another broker is the leader.")
    return key


def check_leader_epoch(topics: TopicCatalogue, key: PartitionKey, epoch: int) -> None:
    """Raise ``TopicDataError`` if the client's leader epoch is not the partition's (KIP-320)."""
    known = topics.leader_of(key).epoch
    if epoch > known:
        raise TopicDataError(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"Leader epoch {epoch} is above the current {known}."
        )
    if epoch < known:
        raise TopicDataError(
            ErrorCode.FENCED_LEADER_EPOCH, f"Leader epoch {epoch} is below the current {known}."
        )


def compute_error_for_version(error: int, by_id: bool) -> int:
    """UNKNOWN_TOPIC_ID becomes UNKNOWN_TOPIC_OR_PARTITION for a request that names topics."""
    if error == ErrorCode.UNKNOWN_TOPIC_ID and not by_id:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return error


def find_duplicates(names: Iterable[Result]) -> set[Result]:
    """The items that occur more than once; one pass if none does."""
    counts = Counter(names)
    if len(counts) == counts.total():
        return set()
    return {name for name, count in counts.items() if count > 1}


class Gather(Generic[Result]):
    """Collects results in order and calls ``on_done`` once, when all are there.

    ``add`` fills a slot at once, ``submit`` fills it from the answer to a command, and ``begin``
    returns the function that fills it.
    """

    def __init__(
        self, context: RequestContext, on_done: Callable[[Sequence[Result]], None]
    ) -> None:
        self._context = context
        self._on_done = on_done
        self._results: list[Any] = []
        self._missing = 1

    def add(self, result: Result) -> None:
        """Add a result."""
        self._results.append(result)

    def submit(self, command: Command, to_result: Callable[[Answer], Result]) -> None:
        """Submit ``command`` and reserve a slot for the result that ``to_result`` makes of it."""
        fill = self.begin()
        self._context.submit(command, lambda answer: fill(to_result(answer)))

    def begin(self) -> Callable[[Result], None]:
        """Reserve a slot; the returned function fills it."""
        number = len(self._results)
        self._results.append(None)
        self._missing += 1

        def fill(result: Result) -> None:
            self._results[number] = result
            self.close()

        return fill

    def close(self) -> None:
        """Declare the last slot added. Each filled slot counts down through this too."""
        self._missing -= 1
        if not self._missing:
            self._on_done(self._results)
