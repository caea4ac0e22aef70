"""A connection with commit templates answers and commits like one without.

Two servers get the same steps, drawn from a seed: commits of one and of many partitions, by members
and by non-members, valid and invalid; members that join and leave; topics that grow. One server
decodes every request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from coordinator.runtime.runtime import Runtime
from gateway.api import Repeats
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import request_schema
from gateway.commits.commit_templates import CommitRowsTemplate
from model.caller import INTERNAL
from model.commands.topics import CreateTopic, GrowTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, TopicName, compute_log_partition
from model.log.records import OffsetCommitKey
from storage.codec.batches import decode_batch
from storage.codec.record_codec import decode_key, decode_value
from storage.log.fold import PartitionFold
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.gateway.wire_rig import topic_id_of, with_settings
from tests.support.gateway.wire_steps import COMMIT, FETCH, HEARTBEAT, VERSIONS, commit_topics
from tests.support.memory import MemoryLogStore
from tests.support.waiting import until
from tests.support.wire.fields import join
from tests.support.wire.frames import frame, make_request

STEPS = 150
KINDS = {
    "many": 60,
    "alone": 60,
    "member": 60,
    "stale": 4,
    "text": 4,
    "join": 3,
    "leave": 3,
    "grow": 2,
    "other": 4,
}
"""What is sent, and how often."""


class NothingKept(dict[int, Repeats]):
    """Stands in for a connection's templates and keeps none."""

    def __setitem__(self, key: int, kept: Repeats) -> None:
        pass


class Side:
    """One server, and one connection, shared by two clients."""

    def __init__(self, runtime: Runtime, keeps: bool) -> None:
        self.runtime = runtime
        self.door = Gateway(with_settings(gateway_park_ms=0), coordinator=runtime).connect()
        if not keeps:
            self.door.connection.repeats = NothingKept()
        self.kept = 0

    async def ask(self, *requests: bytes) -> Sequence[bytes]:
        """The responses to requests sent in one piece."""
        self.kept += COMMIT in self.door.connection.repeats
        self.door.send(b"".join(requests))
        return await frames_of(self.door, len(requests))


async def frames_of(door: Door, count: int = 1) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += door.frames()
            await asyncio.sleep(0)
    return found


async def make_side(keeps: bool, partitions: int = 12) -> Side:
    runtime = Runtime(MemoryLogStore(50), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    await runtime.call(CreateTopic(INTERNAL, TopicName("t"), topic_id_of("t"), partitions))
    return Side(runtime, keeps)


def request_of(key: int, version: int, correlation_id: int, **fields: Any) -> bytes:
    request = make_request(key, version, **fields)
    return frame(key, version, correlation_id, encode(type(request), request))


def commit_of(
    version: int,
    partition: int,
    offset: int,
    *,
    group: str = "g",
    metadata: str = "",
    **who: object,
) -> bytes:
    topics = commit_topics(version, "t", {partition: (offset, metadata)})
    return request_of(COMMIT, version, offset, group_id=group, topics=topics, **who)


def commit_of_many(version: int, rng: random.Random, **who: Any) -> bytes:
    """Mostly of the same partitions; sometimes of others, some of which do not exist."""
    first = rng.choice([0, 0, 0, 0, 0, 1, 3])
    rows = {first + number: (rng.randrange(1 << 40), "") for number in range(10)}
    if rng.random() < 0.05:
        rows[first] = (1, "text")
    topics = commit_topics(version, "t", rows)
    return request_of(COMMIT, version, rng.randrange(99), group_id="h", topics=topics, **who)


def draw_step(rng: random.Random) -> bytes | str:
    version = rng.choice([8, 9, 9, 9, 9, 10])
    partition, offset = rng.choice([0, 0, 1, 2, 3, 12, 15, -1]), rng.randrange(1 << 30)
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    member = {"member_id": "m", "generation_id_or_member_epoch": 2}
    match kind:
        case "many":
            return commit_of_many(rng.choice([8, 9, 9, 10]), rng, **rng.choice([{}, member]))
        case "alone":
            return commit_of(version, partition, offset)
        case "member":
            return commit_of(version, partition, offset, group="h", **member)
        case "stale":
            stale = {**member, "generation_id_or_member_epoch": rng.choice([1, 9])}
            return commit_of(version, partition, offset, group="h", **stale)
        case "text":
            return commit_of(version, partition, offset, metadata=rng.choice("ab"))
        case "join":
            name = rng.choice(["m", "n"])
            return request_of(HEARTBEAT, 1, offset % 9, **join("h", name, ("t",)))
        case "leave":
            fields = {"group_id": "h", "member_id": rng.choice(["m", "n"]), "member_epoch": -1}
            return request_of(HEARTBEAT, 1, offset % 9, **fields)
        case "other":
            return commit_of(7, partition, offset)
        case _:
            return kind


async def grow(runtime: Runtime) -> None:
    partitions = runtime.image.by_name[TopicName("t")].partitions
    await runtime.call(GrowTopic(INTERNAL, TopicName("t"), partitions + 1))


async def committed(side: Side, group: str) -> Sequence[bytes]:
    return await side.ask(request_of(FETCH, 9, 1, groups=fetch_of_all(group), require_stable=True))


def fetch_of_all(group: str) -> tuple[object, ...]:
    wire = request_schema(FETCH, 9)
    return (wire.OffsetFetchRequestGroup(group_id=group, topics=None),)


@pytest.mark.parametrize("seed", range(6))
async def test_who_keeps_commits_answers_as_who_does_not(seed: int) -> None:
    rng = random.Random(seed)
    sides = [await make_side(keeps=True), await make_side(keeps=False)]
    for _ in range(STEPS):
        steps = [draw_step(rng) for _ in range(rng.choice([1, 1, 1, 2, 5]))]
        requests = [step for step in steps if isinstance(step, bytes)]
        if len(requests) < len(steps):
            for side in sides:
                await grow(side.runtime)
        answers = [await side.ask(*requests) for side in sides]
        assert answers[0] == answers[1]
    for group in ("g", "h"):
        assert await committed(sides[0], group) == await committed(sides[1], group)
    assert sides[0].kept > STEPS / 3, "the law was hardly ever tried"
    assert sides[1].kept == 0
    for side in sides:
        await side.runtime.stop()


@pytest.mark.parametrize("count", [8_192, 8_193, 8_455])
async def test_a_commit_of_very_many_partitions_is_in_the_log_as_it_was_said(count: int) -> None:
    side = await make_side(keeps=True, partitions=count)
    for version_of_all in (1, 2):
        offsets = {number: (version_of_all << 32 | number, "") for number in range(count)}
        topics = commit_topics(9, "t", offsets)
        await side.ask(request_of(COMMIT, 9, version_of_all, group_id="g", topics=topics))
    assert isinstance(side.door.connection.repeats[COMMIT], CommitRowsTemplate)
    store = side.runtime._around.store
    partition = compute_log_partition(GroupId("g"), store.partitions)
    *_, last = store.read_log(partition)
    records = decode_batch(last).records
    assert len(records) == count, "it was written in one batch, by the short way"
    for (number, (offset, _)), record in zip(offsets.items(), records, strict=True):
        key, value = record.key, record.value
        assert key is not None
        assert value is not None
        assert decode_key(key) == OffsetCommitKey(GroupId("g"), TopicName("t"), number)
        assert getattr(decode_value(1, value)[1], "offset", None) == offset
    fold = PartitionFold()
    for data in store.read_log(partition):
        fold.apply(data)
    assert list(fold.latest.values()) == list(store.latest(partition))
    await side.runtime.stop()


async def test_answers_leave_in_the_order_of_the_requests() -> None:
    side = await make_side(keeps=True)
    await side.ask(commit_of(9, 0, 1))
    assert COMMIT in side.door.connection.repeats
    for correlation_id in (2, 3):
        side.door.send(commit_of(9, 0, correlation_id))
    side.door.request(VERSIONS, 0, 4)
    side.door.send(commit_of(9, 1, 5))
    frames = await frames_of(side.door, 4)
    assert [int.from_bytes(data[:4], "big") for data in frames] == [2, 3, 4, 5]
    await side.runtime.stop()


async def test_a_connection_that_goes_loses_no_commit() -> None:
    side = await make_side(keeps=True)
    await side.ask(commit_of(9, 0, 1))
    side.door.send(commit_of(9, 0, 2))
    side.door.lose()
    other = Gateway(coordinator=side.runtime).connect()
    await until(lambda: side.runtime.parts.writer.is_idle, "all is written", pause_s=0)
    other.send(request_of(FETCH, 9, 1, groups=fetch_of_all("g"), require_stable=False))
    [data] = await frames_of(other)
    assert (2).to_bytes(8, "big") in data
    await side.runtime.stop()


async def test_two_commits_in_one_piece_and_half_of_one_are_served() -> None:
    side = await make_side(keeps=True)
    await side.ask(commit_of(9, 0, 1))
    side.door.send(commit_of(9, 0, 2) + commit_of(9, 0, 3))
    assert len(await frames_of(side.door, 2)) == 2
    data = commit_of(9, 0, 4)
    side.door.send(data[:20])
    side.door.send(data[20:])
    [frame_of_4] = await frames_of(side.door)
    assert int.from_bytes(frame_of_4[:4], "big") == 4
    await side.runtime.stop()
