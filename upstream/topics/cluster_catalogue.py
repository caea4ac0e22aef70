"""The cluster's topics as a ``TopicCatalogue``: their records are the brokers'.

Clients produce to and fetch from the brokers, through the relays. So nothing here has records, and
what would ask for some is answered as by a broker that leads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from coordinator.runtime.loop.slices import Steps
from gateway.topics.topic_catalogue import (
    Append,
    AppendResult,
    Broker,
    DataWatch,
    OffsetQuery,
    OffsetResult,
    PartitionKey,
    PartitionLeader,
    Read,
    ReadResult,
)
from model.errors import ErrorCode
from model.ids import TopicId
from model.topics import Topic, TopicImage

ELSEWHERE = PartitionLeader(-1, -1)


class NoWatch:
    """Nothing is appended here (``gateway.topics.topic_catalogue.DataWatch``)."""

    def end(self) -> None:
        """Nothing to end."""

    def cancel(self) -> None:
        """Nothing to cancel."""


class ClusterCatalogue:
    """``gateway.topics.topic_catalogue.TopicCatalogue`` of a node that leads no partition."""

    def __init__(self, image: Callable[[], TopicImage]) -> None:
        self._image = image

    @property
    def image(self) -> TopicImage:
        return self._image()

    @property
    def fetch_max_bytes(self) -> int:
        return 0

    def brokers(self) -> Sequence[Broker]:
        return ()

    def leader_of(self, key: PartitionKey) -> PartitionLeader:
        return ELSEWHERE

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader]:
        return [ELSEWHERE] * topic.partitions

    def append(self, appends: Sequence[Append]) -> Steps[Sequence[AppendResult]]:
        yield from ()
        return [AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER) for _ in appends]

    def read(
        self, reads: Sequence[Read], max_bytes: int, *, at_least_one: bool = True
    ) -> Steps[Sequence[ReadResult]]:
        yield from ()
        return [ReadResult(ErrorCode.NOT_LEADER_OR_FOLLOWER) for _ in reads]

    def find_offsets(self, queries: Sequence[OffsetQuery]) -> Steps[Sequence[OffsetResult]]:
        yield from ()
        return [OffsetResult(ErrorCode.NOT_LEADER_OR_FOLLOWER) for _ in queries]

    def watch(
        self, keys: Collection[PartitionKey], min_bytes: int, on_data: Callable[[], None]
    ) -> DataWatch:
        return NoWatch()

    def topic_configs(self, topic_id: TopicId) -> Mapping[str, str]:
        return {}

    def keep_cleanup_policy(
        self, topic_id: TopicId, policy: str, on_done: Callable[[ErrorCode], None]
    ) -> None:
        on_done(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def drop_cleanup_policy(self, topic_id: TopicId) -> None:
        """Nothing was kept."""
