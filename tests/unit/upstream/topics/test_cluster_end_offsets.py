"""The cluster's leaders are asked where partitions end, for many who ask at the same time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from model.errors import ErrorCode
from model.ids import TopicName
from tests.support.upstream.fake_broker import METADATA, Act, Asked, FakeBroker, FakeCluster
from tests.support.waiting import until
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.topics import leader_offsets
from upstream.topics.cluster_end_offsets import ClusterEndOffsets, EndOffsetLimits
from upstream.topics.leader_offsets import LIST_OFFSETS, TopicPartition

ORDERS = TopicName("orders")
KEPT_MS = 60_000
TIMEOUT_MS = 600
"""Of which a broker has a third."""


class Leaders:
    """Topic ``orders``, the partitions of which are led by brokers in turn and end at 100 + n."""

    def __init__(self, brokers: int = 2, partitions: int = 4) -> None:
        self.cluster = FakeCluster(brokers)
        self.ends = {number: 100 + number for number in range(partitions)}
        self.leaders = {number: number % brokers + 1 for number in self.ends}
        self.errors: dict[int, int] = {}
        self.lists: list[tuple[int, list[int]]] = []
        self.silent: set[int] = set()
        self.lost_metadata = 0
        self.cluster.answer(METADATA, self._answer_metadata)
        self.cluster.answer(LIST_OFFSETS, self._answer_offsets)

    def count(self, key: int) -> int:
        return self.cluster.count(key)

    @property
    def metadata_count(self) -> int:
        """How often leaders were looked up."""
        return sum(
            bool(asked.request.topics)
            for broker in self.cluster.brokers.values()
            for asked in broker.asked
            if asked.key == METADATA
        )

    def _answer_metadata(self, asked: Asked) -> Any:
        names = [topic.name for topic in asked.request.topics or ()]
        if names and self.lost_metadata:
            self.lost_metadata -= 1
            return Act.CLOSE
        fields: dict[str, Any] = {
            "brokers": tuple(
                {"node_id": each.node_id, "host": "127.0.0.1", "port": each.port}
                for each in self.cluster.brokers.values()
            ),
            "cluster_id": self.cluster.cluster_id,
            "controller_id": 1,
        }
        return {**fields, "topics": tuple(self._describe(name) for name in names)}

    def _describe(self, name: str) -> dict[str, Any]:
        if name != ORDERS:
            return {"name": name, "error_code": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
        rows = ({"partition_index": n, "leader_id": node} for n, node in self.leaders.items())
        return {"name": name, "partitions": tuple(rows)}

    def _answer_offsets(self, asked: Asked) -> Any:
        broker: FakeBroker = asked.broker
        request = asked.request
        assert (request.replica_id, request.isolation_level) == (-1, 0)
        found = defaultdict(list)
        for topic in request.topics:
            for row in topic.partitions:
                assert row.timestamp == -1
                found[topic.name].append(self._find_end(broker.node_id, row.partition_index))
        self.lists.append((broker.node_id, [row["partition_index"] for row in found[ORDERS]]))
        if broker.node_id in self.silent:
            return Act.SILENCE
        topics = ({"name": name, "partitions": tuple(rows)} for name, rows in found.items())
        return {"topics": tuple(topics)}

    def _find_end(self, node_id: int, partition: int) -> dict[str, int]:
        error = self.errors.get(partition, 0)
        if not error and self.leaders[partition] != node_id:
            error = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        offset = -1 if error else self.ends[partition]
        return {"partition_index": partition, "error_code": error, "offset": offset}


@asynccontextmanager
async def running(
    leaders: Leaders, timeout_ms: int = TIMEOUT_MS, **limits: int
) -> AsyncIterator[ClusterEndOffsets]:
    async with leaders.cluster as cluster:
        client = ClusterClient(ClusterSettings(cluster.addresses, connect_timeout_ms=2_000))
        await client.start()
        chosen = EndOffsetLimits(**{"kept_ms": KEPT_MS, **limits})
        offsets = ClusterEndOffsets(client, timeout_ms=timeout_ms, limits=chosen)
        try:
            yield offsets
        finally:
            await offsets.stop()
            await client.stop()


def places(*partitions: int, topic: TopicName = ORDERS) -> list[TopicPartition]:
    return [(topic, number) for number in partitions]


async def find(offsets: ClusterEndOffsets, *partitions: int) -> dict[int, int]:
    found = await offsets.find_end_offsets(places(*partitions))
    return {number: offset for (_, number), offset in found.items()}


async def test_each_leader_is_asked_once_for_all_who_ask() -> None:
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000) as offsets:
        found = await asyncio.gather(find(offsets, 0, 1), find(offsets, 1, 2), find(offsets, 3))
        assert list(found) == [{0: 100, 1: 101}, {1: 101, 2: 102}, {3: 103}]
        assert sorted((node, sorted(rows)) for node, rows in leaders.lists) == [
            (1, [0, 2]),
            (2, [1, 3]),
        ]
        assert leaders.metadata_count == 1


async def test_an_answer_is_kept_for_a_while_and_no_longer() -> None:
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000) as offsets:
        assert await find(offsets, 0) == {0: 100}
        leaders.ends[0] = 200
        assert await find(offsets, 0) == {0: 100}
        assert len(leaders.lists) == 1
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000, kept_ms=1) as offsets:
        assert await find(offsets, 0) == {0: 100}
        leaders.ends[0] = 200
        await until(lambda: not offsets._lookup_of)
        assert await find(offsets, 0) == {0: 200}
        assert leaders.metadata_count == 1


async def test_a_leader_that_has_moved_is_looked_up_again() -> None:
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000, kept_ms=1) as offsets:
        assert await find(offsets, 0, 1) == {0: 100, 1: 101}
        await until(lambda: not offsets._lookup_of)
        leaders.leaders[0] = 2
        assert await find(offsets, 0, 1) == {0: 100, 1: 101}
        assert leaders.metadata_count == 2


async def test_what_is_not_known_is_left_out() -> None:
    leaders = Leaders(partitions=5)
    leaders.leaders[2] = -1
    leaders.errors[1] = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    leaders.ends[4] = -1
    async with running(leaders, timeout_ms=3_000) as offsets:
        wanted = [*places(0, 1, 2, 3, 4, 5, -1), *places(0, topic=TopicName("gone"))]
        assert await offsets.find_end_offsets(wanted) == {(ORDERS, 0): 100, (ORDERS, 3): 103}
        assert await offsets.find_end_offsets([]) == {}


async def test_an_end_at_zero_is_known() -> None:
    leaders = Leaders()
    leaders.ends[0] = 0
    async with running(leaders, timeout_ms=3_000) as offsets:
        assert await find(offsets, 0) == {0: 0}


async def test_a_leader_that_never_stops_to_refuse_is_not_asked_for_ever() -> None:
    leaders = Leaders()
    leaders.errors[0] = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    async with running(leaders, timeout_ms=3_000) as offsets:
        assert await find(offsets, 0, 1) == {1: 101}
        asked = [rows for node, rows in leaders.lists if node == 1]
        assert asked == [[0]] * leader_offsets.ATTEMPTS


async def test_a_silent_broker_costs_its_partitions_alone() -> None:
    leaders = Leaders()
    leaders.silent.add(2)
    loop = asyncio.get_running_loop()
    async with running(leaders) as offsets:
        began = loop.time()
        assert await find(offsets, 0, 1, 2, 3) == {0: 100, 2: 102}
        assert loop.time() - began < 10 * TIMEOUT_MS / 1_000
        leaders.silent.clear()


async def test_a_broker_that_is_gone_hands_its_partitions_on() -> None:
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000, kept_ms=1) as offsets:
        assert await find(offsets, 0, 1) == {0: 100, 1: 101}
        await until(lambda: not offsets._lookup_of)
        await leaders.cluster[2].stop()
        leaders.leaders[1] = 1
        assert await find(offsets, 0, 1) == {0: 100, 1: 101}


async def test_leaders_are_looked_up_again_if_nobody_said_them() -> None:
    leaders = Leaders(brokers=1)
    async with running(leaders, timeout_ms=3_000, kept_ms=1) as offsets:
        assert await find(offsets, 0) == {0: 100}
        await until(lambda: not offsets._lookup_of)
        leaders.lost_metadata = 1
        assert await find(offsets, 0, 1) == {0: 100, 1: 101}
        assert leaders.lost_metadata == 0
        await until(lambda: not offsets._lookup_of)
        leaders.lost_metadata = 1_000
        assert await find(offsets, 0, 2) == {0: 100}


async def test_requests_have_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_offsets, "PARTITIONS_PER_REQUEST", 3)
    leaders = Leaders(brokers=1, partitions=8)
    async with running(leaders, timeout_ms=3_000) as offsets:
        assert await find(offsets, *range(8)) == leaders.ends
        assert [rows for _, rows in leaders.lists] == [[0, 1, 2], [3, 4, 5], [6, 7]]


async def test_partitions_and_callers_are_bounded() -> None:
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000, partitions_max=2) as offsets:
        assert await find(offsets, 0, 1, 2) == {0: 100, 1: 101}
        assert await find(offsets, 1, 3) == {1: 101}
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000, callers_max=1) as offsets:
        assert list(await asyncio.gather(find(offsets, 0), find(offsets, 1))) == [{0: 100}, {}]
        assert await find(offsets, 1) == {1: 101}


async def test_who_waits_is_released_when_it_stops() -> None:
    leaders = Leaders()
    async with running(leaders, gather_ms=60_000) as offsets:
        waiting = asyncio.create_task(find(offsets, 0))
        await asyncio.sleep(0)
        await offsets.stop()
        async with asyncio.timeout(30):
            assert await waiting == {}


async def test_one_who_gives_up_does_not_end_it_for_others() -> None:
    leaders = Leaders()
    async with running(leaders, timeout_ms=3_000) as offsets:
        first, second = (asyncio.create_task(find(offsets, 0)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == {0: 100}
