"""What the gateway needs of "the topics and their records": ``TopicCatalogue``.

The topics themselves are the coordinator's image. The records behind them are kept by whoever leads
the partitions: the store of this process (``gateway.topics.local_topics``), or the brokers of a
cluster, to which clients are then sent. So nothing here says that this server leads anything:
``leader_of`` and ``leaders_of`` do, partition by partition.

Calls and callbacks are on the event loop. What may take long comes to its results in slices, which
the request that asks for it takes in its turns; one whose connection is gone takes no more. A
callback may be called before the call returns; it is called exactly once. Expected failures are
results with an ``error``, never exceptions.
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
    """One partition of one incarnation of a topic."""

    topic_id: TopicId
    partition: int


class PartitionLeader(NamedTuple):
    """Who leads a partition; ``node_id`` ``None`` is this server, which then is every replica."""

    node_id: int | None
    epoch: int
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()


class Broker(NamedTuple):
    """A server that leads partitions, other than this one."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """One RecordBatch v2 as a producer sent it, for one partition."""

    key: PartitionKey
    records: bytes


@dataclass(frozen=True, slots=True)
class AppendResult:
    """``base_offset`` is -1 where nothing was appended, for which ``error`` and ``message`` stand.

    A batch that was appended before (an idempotent producer's retry) has the offset it got then,
    and ``duplicate_timestamp`` its largest timestamp. ``rejected`` are the records, by their index
    in the batch, for whose sake the batch was refused, where it was for single ones.
    """

    error: int
    base_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    message: str | None = None
    rejected: tuple[int, ...] = ()
    duplicate_timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Records of one partition from ``offset`` on, in at most about ``max_bytes``."""

    key: PartitionKey
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Whole record batches, the first of which holds ``offset`` or what follows it.

    There are no transactions, so the last stable offset is the high watermark.
    """

    error: int
    records: bytes = b""
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class OffsetQuery:
    """The first offset whose timestamp (ms) is at or after ``timestamp``, or a special one."""

    key: PartitionKey
    timestamp: int


@dataclass(frozen=True, slots=True)
class OffsetResult:
    """``offset`` and ``timestamp`` are -1 where no record answers the query."""

    error: int
    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    leader_epoch: int = NO_LEADER_EPOCH


class DataWatch(Protocol):
    """A registered wait for records."""

    def end(self) -> None:
        """Let it be over: its callback is called soon, as if there were records."""

    def cancel(self) -> None:
        """Forget it; does nothing after its callback was called."""


class TopicCatalogue(Protocol):
    """Topics and their records, wherever they are kept.

    Topics are created, grown and deleted by the coordinator's commands; a catalogue follows.
    """

    @property
    def image(self) -> TopicImage:
        """All topics, as the coordinator has them."""

    @property
    def fetch_max_bytes(self) -> int:
        """Bytes of records that one fetch may get, whatever it asks for."""

    def brokers(self) -> Sequence[Broker]:
        """The servers that ``leader_of`` may name."""

    def leader_of(self, key: PartitionKey) -> PartitionLeader:
        """Who leads a partition that is in the image."""

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader]:
        """``leader_of`` for each partition of a topic."""

    def append(self, appends: Sequence[Append]) -> Steps[Sequence[AppendResult]]:
        """Append batches, one after another; the results are in the order of ``appends``."""

    def read(
        self, reads: Sequence[Read], max_bytes: int, *, at_least_one: bool = True
    ) -> Steps[Sequence[ReadResult]]:
        """Read what is there in its last slice; the results are in the order of ``reads``.

        ``max_bytes`` bounds the whole, filled in order. The first batch found comes even if it is
        larger than that or than its own ``max_bytes``, so that a reader always gets on; but not
        where the reader has got one already, ``at_least_one``.
        """

    def find_offsets(self, queries: Sequence[OffsetQuery]) -> Steps[Sequence[OffsetResult]]:
        """Find offsets; the results are in the order of ``queries``."""

    def watch(
        self, keys: Collection[PartitionKey], min_bytes: int, on_data: Callable[[], None]
    ) -> DataWatch:
        """Call ``on_data`` once, when ``min_bytes`` more were appended to these partitions.

        Also when one of them is deleted. Never before this returns.
        """

    def topic_configs(self, topic_id: TopicId) -> Mapping[str, str]:
        """The settings that are in force for a topic, by Kafka's names."""

    def keep_cleanup_policy(
        self, topic_id: TopicId, policy: str, on_done: Callable[[ErrorCode], None]
    ) -> None:
        """Make ``cleanup.policy`` last for a topic that is about to be created."""

    def drop_cleanup_policy(self, topic_id: TopicId) -> None:
        """Forget it where the topic was not created."""


class TopicDataError(Exception):
    """Why one partition of a request is refused: Kafka's error code, and a line for people."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def is_in_image(image: TopicImage, key: PartitionKey) -> bool:
    """Whether the partition exists."""
    topic = image.by_id.get(key.topic_id)
    return topic is not None and 0 <= key.partition < topic.partitions


def compute_missing_error(image: TopicImage, key: PartitionKey) -> ErrorCode:
    """The error for a partition that is not there, as a reader by topic id gets it."""
    if key.topic_id not in image.by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
