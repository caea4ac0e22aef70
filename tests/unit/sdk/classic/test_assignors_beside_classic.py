"""An assignor of the application comes to the new protocol: classic members go on by its bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

import muster
from muster.assignors import embedded
from muster.partitions import TopicPartition
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import ALL, classic_stand

ODD = bytes(range(256))
"""What no coordinator could make sense of."""


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with classic_stand() as running:
        yield running


def say() -> bytes:
    subscription = embedded.Subscription(("orders",), b"said by the old client" + ODD)
    return embedded.encode_subscription(subscription)


def assign_old(generation: muster.Generation) -> Mapping[str, bytes]:
    """The old assignor, run by the leader: everything is the leader's, with bytes of its own."""
    partitions = (embedded.TopicPartitions("orders", (0, 1, 2, 3)),)
    given = embedded.Assignment(partitions, b"by the leader" + ODD)
    return {generation.leader: embedded.encode_assignment(given)}


class New(muster.Assignor):
    """The new assignor: it understands what the old one says, and speaks its language to it."""

    name = "ours"
    minimum_version = -1
    maximum_version = 1

    def __init__(self) -> None:
        self.read: list[embedded.Subscription] = []
        self.told: list[bytes] = []

    def assign(self, group: muster.Group) -> Mapping[str, muster.MemberAssignment]:
        given = {}
        for member in group.members.values():
            said = member.metadata
            places: tuple[int, ...] = (2, 3)
            if said.version == -1:
                # Of the old protocol, or one that has no assignor and says nothing.
                places = (0, 1) if said.data else ()
            if places == (0, 1):
                self.read.append(embedded.decode_subscription(said.data))
            given[member.member_id] = muster.MemberAssignment(
                frozenset(TopicPartition("orders", index) for index in places),
                muster.Metadata(min(said.version, 1), b"by the new one" + ODD),
            )
        return given

    def on_assignment(self, assignment: muster.MemberAssignment, generation: int) -> None:
        self.told.append(assignment.metadata.data)


def make_old(stand: Stand, told: list[embedded.Assignment], **options: Any) -> muster.ClassicWorker:
    def note(assignment: bytes, generation: muster.Generation) -> None:
        told.append(embedded.decode_assignment(assignment))

    return muster.ClassicWorker(
        stand.target,
        "billing",
        protocol_type="consumer",
        protocols={"ours": lambda: say()},
        assign=assign_old,
        on_assignment=note,
        heartbeat_interval_ms=30,
        session_timeout_ms=10_000,
        **options,
    )


async def test_the_bytes_of_the_application_go_both_ways(stand: Stand) -> None:
    told: list[embedded.Assignment] = []
    new, assignor = None, New()
    async with make_old(stand, told):
        await until(lambda: told)
        assert told[0].user_data == b"by the leader" + ODD
        # A member that does not understand them is not let in.
        with pytest.raises(muster.JoinRefused, match="GROUP_ID_NOT_FOUND"):
            await muster.Member(stand.target, "billing", topics=["orders"]).join()
        new = muster.Member(stand.target, "billing", topics=["orders"], assignors=[assignor])
        async with new:
            assert new is not None
            await until(lambda: new.assignment == {p for p in ALL if p.partition > 1})
            assert assignor.read[0].user_data == b"said by the old client" + ODD
            assert assignor.told == [b"by the new one" + ODD]
            await until(lambda: told[-1].partitions and len(told[-1].partitions[0].partitions) == 2)
            assert told[-1].user_data == b"by the new one" + ODD
            # Stock members may join now: they have no bytes.
            async with muster.Member(stand.target, "billing", topics=["orders"]):
                await until(lambda: len(assignor.told) == 2)
        # The last of the new protocol has gone: the old assignor computes again.
        await until(lambda: told[-1].user_data == b"by the leader" + ODD)


async def test_a_range_without_minus_one_is_refused_beside_classic_members(stand: Stand) -> None:
    class Newer(New):
        minimum_version = 0

    told: list[embedded.Assignment] = []
    async with make_old(stand, told):
        await until(lambda: told)
        member = muster.Member(stand.target, "billing", topics=["orders"], assignors=[Newer()])
        with pytest.raises(muster.JoinRefused, match=r"INVALID_REQUEST.*version -1"):
            await member.join()
