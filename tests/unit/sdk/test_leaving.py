"""Members that end in the middle of something: nobody stays behind, and nobody is told too early."""

from __future__ import annotations

import asyncio

import pytest

import muster
from muster.membership import Partitions
from tests.unit.sdk.test_member import ALL, make_member
from tests.unit.service.stand import Stand, until

AFTER_ANY_LEASE = float("inf")


@pytest.mark.parametrize("instance_id", ["", "i-1"])
async def test_a_lease_that_lapses_on_a_living_stream_leaves_nobody_behind(
    stand: Stand, instance_id: str
) -> None:
    """A process that stood still: the server has not seen it, and others renew the stream."""
    async with muster.Member(stand.target, "another", topics=["orders"]):
        member = make_member(stand, rejoin=False, instance_id=instance_id, on_lost=None)
        await member.join()
        await until(lambda: member.assignment == ALL)
        assert member._engine is not None
        member._engine.check_lease(AFTER_ANY_LEASE)
        with pytest.raises(muster.MemberLost):
            member.poll()
        await member.close()
        async with make_member(stand, name="b", instance_id=instance_id) as next_one:
            await until(lambda: next_one.assignment == ALL)


async def test_others_need_not_wait_for_what_a_member_does_that_has_lost_everything(
    stand: Stand,
) -> None:
    gate = asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "lost":
            await gate.wait()

    async with make_member(stand, name="a", hold=hold) as slow:
        await until(lambda: slow.assignment == ALL)
        async with make_member(stand, name="b") as quick:
            await until(lambda: len(quick.assignment) == 2)
            assert slow._engine is not None
            slow._engine.check_lease(AFTER_ANY_LEASE)
            await until(lambda: quick.assignment == ALL)
            gate.set()
            await until(lambda: len(slow.assignment) == len(quick.assignment) == 2)
