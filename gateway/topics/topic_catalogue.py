"""``TopicCatalogue``: the gateway's interface to topics and their records.

The coordinator's image has the topics. The partition leaders have the records: the store of this
process (``gateway.topics.local_topics``), or the brokers of a cluster, to which clients are
directed. So this interface does not assume that this server leads a partition; ``leader_of`` and
``leaders_of`` name the leader of each.

Calls and callbacks are on the event loop. Long operations are generators of time slices, which the
request runs; it stops when its connection is gone. A callback is called exactly once, possibly
before the call returns. Expected failures are results with an ``error``, never exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from coordinator.runtime.loop.slices import Steps
from model.errors import ErrorCode
from model.ids import TopicId
from model.topics import Topic, TopicImage

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6

NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1


class PartitionKey(NamedTuple):
    """One partition of a topic; a recreated topic has another id."""

    topic_id: TopicId
    partition: int


class PartitionLeader(NamedTuple):
    """A partition's leader; ``node_id`` ``None`` is this server, which is then the only replica."""

    node_id: int | None
    epoch: int
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()


class Broker(NamedTuple):
    """Another server, which leads partitions."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """One record batch (format v2) for one partition, as a producer sent it."""

    key: PartitionKey
    records: bytes


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The result of an append; ``base_offset`` is -1 if ``error`` and ``message`` say it failed.

    A duplicate of an earlier batch (an idempotent producer's retry) returns that batch's offset and
    its largest timestamp as ``duplicate_timestamp``. ``rejected`` has the batch indexes of the
    records that caused a rejection, if single records did.
    """

    error: int
    base_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    message: str | None = None
    rejected: tuple[int, ...] = ()
    duplicate_timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A read of one partition from ``offset`` on, of at most about ``max_bytes``."""

    key: PartitionKey
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Whole record batches, starting with the one that has ``offset`` or else the next.

    There are no transactions, so the last stable offset is the high watermark.
    """

    error: int
    records: bytes = b""
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class OffsetQuery:
    """Asks for the first offset at or after ``timestamp`` (ms), or for a special timestamp's."""

    key: PartitionKey
    timestamp: int


@dataclass(frozen=True, slots=True)
class OffsetResult:
    """The found offset and its timestamp; both are -1 if no record matches."""

    error: int
    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    leader_epoch: int = NO_LEADER_EPOCH


class DataWatch(Protocol):
    """A registered watch for records."""

    def end(self) -> None:
        """End the watch: its callback is called soon, as if there were records."""

    def cancel(self) -> None:
        """Cancel the watch; no effect after its callback ran."""


class TopicCatalogue(Protocol):
    """Topics and their records, wherever those are stored.

    The coordinator's commands create, grow and delete topics; a catalogue follows.
    """

    @property
    def image(self) -> TopicImage:
        """All topics, as the coordinator has them."""

    @property
    def fetch_max_bytes(self) -> int:
        """The upper bound of record bytes in one Fetch response (``fetch.max.bytes``)."""

    def brokers(self) -> Sequence[Broker]:
        """The other servers that ``leader_of`` may return."""

    def leader_of(self, key: PartitionKey) -> PartitionLeader:
        """The leader of a partition in the image."""

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader]:
        """The leader of each partition of a topic."""

    def append(self, appends: Sequence[Append]) -> Steps[Sequence[AppendResult]]:
        """Append batches one after another; the results are in the order of ``appends``."""

    def read(
        self, reads: Sequence[Read], max_bytes: int, *, at_least_one: bool = True
    ) -> Steps[Sequence[ReadResult]]:
        """Read records; the results are in the order of ``reads``, as of the last time slice.

        ``max_bytes`` bounds the sum and is filled in order. With ``at_least_one`` the first batch
        is returned even if it exceeds that or its read's ``max_bytes``, so that a consumer always
        makes progress (KIP-74).
        """

    def find_offsets(self, queries: Sequence[OffsetQuery]) -> Steps[Sequence[OffsetResult]]:
        """Look up offsets; the results are in the order of ``queries``."""

    def watch(
        self, keys: Collection[PartitionKey], min_bytes: int, on_data: Callable[[], None]
    ) -> DataWatch:
        """Call ``on_data`` once, when ``min_bytes`` more are appended to these partitions.

        It is also called when one of them is deleted, and never before this returns.
        """

    def topic_configs(self, topic_id: TopicId) -> Mapping[str, str]:
        """The effective configs of a topic, by Kafka's names."""

    def keep_cleanup_policy(
        self, topic_id: TopicId, policy: str, on_done: Callable[[ErrorCode], None]
    ) -> None:
        """Make ``cleanup.policy`` durable for a topic that is about to be created."""

    def drop_cleanup_policy(self, topic_id: TopicId) -> None:
        """Drop the policy of a topic whose creation failed."""


class TopicDataError(Exception):
    """Fails one topic or partition of a request: Kafka's error code, and an error message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def is_in_image(image: TopicImage, key: PartitionKey) -> bool:
    """Whether the partition exists."""
    topic = image.by_id.get(key.topic_id)
    return topic is not None and 0 <= key.partition < topic.partitions


def compute_missing_error(image: TopicImage, key: PartitionKey) -> ErrorCode:
    """The error for a missing partition in a request that names topics by id."""
    if key.topic_id not in image.by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
