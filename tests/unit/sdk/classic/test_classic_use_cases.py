"""What client-side assignment was proposed for, through members that lead and follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

import muster
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import classic_stand, make_classic, until_shared
from tests.unit.sdk.watcher import Ledger


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with classic_stand() as running:
        yield running


async def test_co_partitioning(stand: Stand) -> None:
    """Two topics that are joined: partition n of both is at one member."""
    await stand.create_topic("payments", 4)
    topics = ["orders", "payments"]
    both = frozenset(muster.TopicPartition(t, p) for t in topics for p in range(4))
    async with (
        make_classic(stand, topics=topics) as one,
        make_classic(stand, topics=topics) as two,
    ):
        await until_shared(one, two, of=both)
        for member in (one, two):
            of_topic = [{p for t, p in member.assignment if t == topic} for topic in topics]
            assert of_topic[0] == of_topic[1]


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
async def test_sticky_partitioning(stand: Stand, assignor: str) -> None:
    """A stateful member keeps what it had, as far as balance allows."""
    ledger = Ledger()
    await stand.create_topic("big", 12)
    all_of_it = frozenset(muster.TopicPartition("big", index) for index in range(12))
    options = {"topics": ["big"], "assignors": [assignor]}
    async with (
        make_classic(stand, ledger, "a", **options) as one,
        make_classic(stand, ledger, "b", **options) as two,
    ):
        await until_shared(one, two, of=all_of_it)
        had = (one.assignment, two.assignment)
        async with make_classic(stand, ledger, "c", **options) as three:
            await until_shared(one, two, three, of=all_of_it)
            assert one.assignment <= had[0]
            assert two.assignment <= had[1]
            kept = three.assignment
            await one.close()
            await until_shared(two, three, of=all_of_it)
            assert three.assignment >= kept
            assert two.assignment >= had[1] - kept
    assert ledger.overlaps == []


async def test_redundant_partitioning(stand: Stand) -> None:
    """Each partition is at two of three members, and at two again when one has gone."""
    options = {"assignors": ["redundant(2)"]}
    async with (
        make_classic(stand, name="a", **options) as one,
        make_classic(stand, name="b", **options) as two,
        make_classic(stand, name="c", **options) as three,
    ):
        members = [one, two, three]

        def copies() -> Counter[muster.TopicPartition]:
            return Counter(key for member in members for key in member.assignment)

        def is_shared() -> bool:
            sizes = sorted(len(member.assignment) for member in members)
            return set(copies().values()) == {2} and sizes[-1] - sizes[0] <= 1

        await until(lambda: len(copies()) == 4 and is_shared())
        await three.close()
        members.remove(three)
        await until(lambda: one.assignment == two.assignment and len(one.assignment) == 4)


async def test_metadata_based_assignment(stand: Stand) -> None:
    """Members say with their metadata what each can hold, and the leader shares by that."""

    def assign(generation: muster.Generation) -> dict[str, bytes]:
        left = list(range(4))
        assigned = {}
        for member in sorted(generation.members, key=lambda each: each.metadata):
            room = int(member.metadata)
            assigned[member.member_id], left = bytes(left[:room]), left[room:]
        return assigned

    def make(room: bytes) -> muster.ClassicWorker:
        return muster.ClassicWorker(
            stand.target,
            "shards",
            protocol_type="shard",
            protocols={"by-room": room},
            assign=assign,
            heartbeat_interval_ms=30,
        )

    async with make(b"1") as small, make(b"3") as large:
        await until(lambda: (small.assignment, large.assignment) == (b"\0", b"\1\2\3"))
