"""Members that end in the middle of something: nobody stays behind, nobody is told too early."""

from __future__ import annotations

import asyncio

import pytest

import muster
from muster.membership import Partitions
from tests.unit.sdk.classic_stand import classic_stand, make_classic
from tests.unit.sdk.test_member import ALL, make_member
from tests.unit.service.stand import Stand, until

AFTER_ANY_LEASE = float("inf")


class Stopping:
    """An application that has something to write yet when ``on_revoked`` is cancelled."""

    def __init__(self) -> None:
        self.began, self.gate = asyncio.Event(), asyncio.Event()

    async def hold(self, event: str, partitions: Partitions) -> None:
        if event == "revoked":
            self.began.set()
            try:
                await asyncio.sleep(3_600)
            finally:
                await self.gate.wait()


async def check_the_callback_ends_first(
    first: muster.Member | muster.ClassicMember,
    second: muster.Member | muster.ClassicMember,
    stopping: Stopping,
) -> None:
    await stopping.began.wait()
    closing = asyncio.create_task(first.close())
    for _ in range(2):
        await asyncio.wait((closing,), timeout=0.1)
        closing.cancel()
    await asyncio.wait((closing,), timeout=0.1)
    assert not closing.done()
    assert second.assignment == frozenset()
    stopping.gate.set()
    await asyncio.wait((closing,))
    assert closing.cancelled()


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


async def test_a_close_that_is_cancelled_waits_for_the_callback_it_cancels(stand: Stand) -> None:
    first = make_member(stand, name="a", hold=(stopping := Stopping()).hold)
    await first.join()
    await until(lambda: first.assignment == ALL)
    async with make_member(stand, name="b") as second:
        await check_the_callback_ends_first(first, second, stopping)
        await until(lambda: second.assignment == ALL)


async def test_a_classic_member_waits_for_the_callback_it_cancels() -> None:
    async with classic_stand() as stand:
        first = make_classic(stand, name="a", hold=(stopping := Stopping()).hold)
        await first.join()
        await until(lambda: first.assignment == ALL)
        second = make_classic(stand, name="b")
        joining = asyncio.create_task(second.join())
        await check_the_callback_ends_first(first, second, stopping)
        await joining
        await until(lambda: second.assignment == ALL)
        await second.close()


async def test_a_callback_that_is_cancelled_and_does_not_end_is_awaited_for_a_lease(
    brisk: Stand,
) -> None:
    member = make_member(brisk, hold=(stopping := Stopping()).hold)
    await member.join()
    await until(lambda: member.assignment == ALL)
    async with make_member(brisk, name="b") as other:
        await stopping.began.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(member.close(), 0.05)
        await until(lambda: other.assignment == ALL)
        stopping.gate.set()


async def test_who_is_giving_up_need_not_poll(stand: Stand) -> None:
    committed = False

    async def hold(event: str, partitions: Partitions) -> None:
        nonlocal committed
        if event == "revoked":
            await asyncio.sleep(0.4)
            await member.commit(dict.fromkeys(partitions, 5))
            committed = True

    member = make_member(stand, hold=hold, max_poll_interval_ms=200, rebalance_timeout_ms=60_000)
    await member.join()
    await until(lambda: member.poll() == ALL)
    await member.close()
    assert committed
