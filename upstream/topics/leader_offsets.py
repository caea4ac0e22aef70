"""Asks the leaders of partitions where these end: ListOffsets, one broker beside the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

from gateway.codec.client_frames import ClientRequest
from gateway.topics.topic_catalogue import LATEST_TIMESTAMP
from model.errors import ErrorCode
from model.ids import TopicName
from upstream.cluster.cluster import Cluster, ClusterUnreachable, NotServed
from upstream.topics.read_topics import TOPICS_PER_REQUEST, make_metadata_request

T = TypeVar("T")

LIST_OFFSETS: Final = 2
READ_UNCOMMITTED: Final = 0
CONSUMER: Final = -1
"""The replica id of who is no broker."""
PARTITIONS_PER_REQUEST: Final = 2_000
LEADERS_MAX: Final = 200_000
ATTEMPTS: Final = 3
PAUSE_S: Final = 0.1
"""Before leaders are looked up again, times the attempts made: an election takes a moment."""
SLICE: Final = 1_000
"""Partitions looked at in one event-loop iteration."""
OFFSET_NOT_AVAILABLE: Final = 78
"""The leader was elected a moment ago, and does not know yet (KIP-207)."""
_LED_ELSEWHERE: Final[frozenset[int]] = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)

TopicPartition: TypeAlias = tuple[TopicName, int]


class LeaderOffsets:
    """Remembers the leader of each partition that was asked for, until it is one no longer."""

    def __init__(self, cluster: Cluster, *, timeout_ms: int) -> None:
        """``timeout_ms`` is for all attempts; a broker gets its share of it for one answer."""
        self._cluster = cluster
        self._ask_timeout_ms = max(timeout_ms // ATTEMPTS, 1)
        self._leaders: dict[TopicPartition, int] = {}

    async def find(
        self,
        wanted: Sequence[TopicPartition],
        found: dict[TopicPartition, int],
        timestamp_ms: int = LATEST_TIMESTAMP,
    ) -> None:
        """Add the offsets of a time to ``found``, as brokers answer; -1 if all records are older.

        The caller bounds how long this may take. Partitions without an answer are left out.
        """
        for attempt in range(ATTEMPTS):
            await asyncio.sleep(PAUSE_S * attempt)
            unheard: list[TopicPartition] = []
            try:
                await self._learn_leaders(wanted)
            except ClusterUnreachable:
                unheard = [place for place in wanted if place not in self._leaders]
            wanted = unheard + await self._ask_leaders(wanted, found, timestamp_ms)
            if not wanted:
                return

    async def _learn_leaders(self, wanted: Sequence[TopicPartition]) -> None:
        missing: set[TopicPartition] = set()
        for part in _slices(wanted, SLICE):
            missing.update(place for place in part if place not in self._leaders)
            await asyncio.sleep(0)
        if len(self._leaders) + len(missing) > LEADERS_MAX:
            self._leaders = {}
            missing.update(wanted)
        names = sorted({name for name, _ in missing})
        for some in _slices(names, TOPICS_PER_REQUEST):
            response = await self._cluster.ask(
                make_metadata_request(some), timeout_ms=self._ask_timeout_ms
            )
            for rows in _slices(_read_leaders(response), SLICE):
                self._leaders.update(
                    (place, leader) for place, leader in rows if place in missing and leader >= 0
                )
                await asyncio.sleep(0)

    async def _ask_leaders(
        self,
        wanted: Sequence[TopicPartition],
        found: dict[TopicPartition, int],
        timestamp_ms: int,
    ) -> list[TopicPartition]:
        """Ask all leaders at once; returns the partitions that may have another leader now."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for part in _slices(wanted, SLICE):
            for place in part:
                leader = self._leaders.get(place)
                if leader is not None:
                    by_leader.setdefault(leader, []).append(place)
            await asyncio.sleep(0)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._ask_leader(leader, led, found, timestamp_ms))
                for leader, led in by_leader.items()
            ]
        return [place for task in tasks for place in task.result()]

    async def _ask_leader(
        self,
        leader: int,
        led: list[TopicPartition],
        found: dict[TopicPartition, int],
        timestamp_ms: int,
    ) -> list[TopicPartition]:
        """Ask one broker; returns the partitions to ask others for."""
        moved: list[TopicPartition] = []
        for part in _slices(led, PARTITIONS_PER_REQUEST):
            elsewhere = part
            try:
                response = await self._cluster.ask(
                    make_request(part, timestamp_ms),
                    node_id=leader,
                    timeout_ms=self._ask_timeout_ms,
                )
                elsewhere = await _read_offsets(response, part, found, timestamp_ms)
            except NotServed:
                return []
            except ClusterUnreachable:
                # Others lead its partitions now, or soon.
                rest = led[led.index(part[0]) :]
                self._forget(rest)
                return moved + rest
            self._forget(elsewhere)
            moved += elsewhere
        return moved

    def _forget(self, places: Iterable[TopicPartition]) -> None:
        for place in places:
            self._leaders.pop(place, None)


def make_request(
    places: Iterable[TopicPartition], timestamp_ms: int = LATEST_TIMESTAMP
) -> ClientRequest:
    """Asks for the offsets of a time, or the latest, those of open transactions included."""
    topics: dict[str, list[dict[str, int]]] = {}
    for name, partition in places:
        row = {"partition_index": partition, "timestamp": timestamp_ms}
        topics.setdefault(name, []).append(row)
    return ClientRequest(
        LIST_OFFSETS,
        {
            "replica_id": CONSUMER,
            "isolation_level": READ_UNCOMMITTED,
            "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
        },
    )


def _read_leaders(response: Any) -> Iterator[tuple[TopicPartition, int]]:
    for topic in response.topics:
        if topic.error_code == ErrorCode.NONE and topic.name is not None:
            name = TopicName(topic.name)
            for row in topic.partitions:
                yield (name, row.partition_index), row.leader_id


async def _read_offsets(
    response: Any,
    asked: Sequence[TopicPartition],
    found: dict[TopicPartition, int],
    timestamp_ms: int,
) -> list[TopicPartition]:
    """Add what is known to ``found``; returns the partitions that this broker does not lead."""
    left = set(asked)
    elsewhere = []
    rows = ((topic.name, row) for topic in response.topics for row in topic.partitions)
    for part in _slices(rows, SLICE):
        for name, row in part:
            place = TopicName(name), row.partition_index
            if place not in left:
                continue
            left.discard(place)
            if row.error_code in _LED_ELSEWHERE:
                elsewhere.append(place)
            elif row.error_code == ErrorCode.NONE and (row.offset >= 0 or timestamp_ms >= 0):
                found[place] = row.offset
        await asyncio.sleep(0)
    return elsewhere


def _slices(items: Iterable[T], length: int) -> Iterator[list[T]]:
    left = iter(items)
    while part := list(islice(left, length)):
        yield part
