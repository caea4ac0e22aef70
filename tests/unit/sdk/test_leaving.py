"""Members that end in the middle of something: nobody stays behind, nobody is told too early."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import muster
from model.caller import INTERNAL
from model.commands.groups import DescribeGroups
from model.ids import GroupId
from model.responses.groups import DescribeGroupsResponse
from muster.membership import Partitions
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import classic_stand, make_classic
from tests.unit.sdk.test_member import ALL, make_member

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


async def test_a_close_that_the_server_does_not_hear_of_is_logged(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody gets the partitions before the session has ended."""
    member = make_member(stand)
    await member.join()
    await until(lambda: member.assignment == ALL)
    await stand.stop_server()
    assert member._engine is not None
    client = member._engine.client
    await until(lambda: client._stream is None)
    await member.close()
    assert "leave_unanswered group=billing" in caplog.text


async def test_a_close_that_the_server_hears_of_is_not_logged(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
    assert "leave_unanswered" not in caplog.text


async def test_a_member_that_cannot_join_again_leaves_nobody_behind(stand: Stand) -> None:
    async with muster.Member(stand.target, "another", topics=["orders"]):
        member = make_member(stand)
        await member.join()
        await until(lambda: member.assignment == ALL)
        engine = member._engine
        assert engine is not None
        options = replace(engine._options, server_assignor="unheard of")
        engine._sender._options = options
        member.request_assignment()
        await until(lambda: member.assignment == frozenset())
        with pytest.raises(muster.JoinRefused, match="unheard of"):
            member.poll()
        await stand.until_empty("billing")
        await member.close()


async def test_a_client_is_closed_while_it_gives_up_a_stream(stand: Stand) -> None:
    """Its member is none any more for the server, or expires: nobody waits for that."""
    client = muster.Client(stand.target)
    member = make_member(client)
    await member.join()
    stream = client._stream
    assert stream is not None
    stream.shut()
    async with asyncio.timeout(30):
        await client.close()
    await member.close()


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


@pytest.mark.parametrize("is_stream_first", [False, True])
@pytest.mark.parametrize("commits", [False, True])
async def test_a_program_whose_tasks_are_all_cancelled_leaves_nobody_behind(
    stand: Stand, is_stream_first: bool, commits: bool
) -> None:
    """So ends ``asyncio.run``: the task that carries the stream is cancelled beside the worker."""
    committed: list[Partitions] = []

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked" and commits:
            await member.commit(dict.fromkeys(partitions, 5))
            committed.append(partitions)

    async def work() -> None:
        async with member:
            await asyncio.sleep(3_600)

    client = muster.Client(stand.target)
    member = make_member(client, hold=hold)
    working = asyncio.create_task(work())
    await until(lambda: member.assignment == ALL)
    assert client._task is not None
    for task in (client._task, working) if is_stream_first else (working, client._task):
        task.cancel()
    await asyncio.wait((working,))
    assert committed == [ALL] * commits
    assert not await stand.members("billing")
    await client.close()


async def test_asyncio_run_ends_with_a_member_in_the_background(stand: Stand) -> None:
    revoked: list[Partitions] = []

    async def work() -> None:
        options = {"topics": ["orders"], "on_revoked": revoked.append}
        async with muster.Member(stand.target, "billing", **options) as member:
            owned.append(member)
            await asyncio.sleep(3_600)

    async def main() -> None:
        working.append(asyncio.create_task(work()))
        await until(lambda: bool(owned) and owned[0].assignment == ALL)

    owned: list[muster.Member] = []
    working: list[asyncio.Task[None]] = []
    await asyncio.to_thread(asyncio.run, main())
    assert revoked == [ALL]
    assert not await stand.members("billing")


async def test_who_has_something_to_do_before_it_closes_gets_a_stream_then(stand: Stand) -> None:
    async def work() -> None:
        async with member:
            try:
                await asyncio.sleep(3_600)
            finally:
                await gate.wait()

    gate, client = asyncio.Event(), muster.Client(stand.target)
    member = make_member(client)
    working = asyncio.create_task(work())
    await until(lambda: member.assignment == ALL)
    assert client._task is not None
    client._task.cancel()
    working.cancel()
    await asyncio.wait((client._task,))
    gate.set()
    await asyncio.wait((working,))
    assert not await stand.members("billing")
    await client.close()


async def test_a_program_that_closes_nothing_leaves_no_task_behind(stand: Stand) -> None:
    """Nobody would await it: the loop is closed as soon as all tasks there are have ended."""
    client = muster.Client(stand.target)
    member = make_member(client)
    await member.join()
    await until(lambda: member.assignment == ALL)
    assert client._task is not None
    before = asyncio.all_tasks()
    client._task.cancel()
    await asyncio.wait((client._task,))
    await asyncio.sleep(0)
    assert client._task.cancelled()
    assert asyncio.all_tasks() <= before
    await member.close()
    await client.close()
    assert not await stand.members("billing")


@pytest.mark.parametrize("commits", [False, True])
async def test_a_classic_member_leaves_where_all_tasks_are_cancelled(commits: bool) -> None:
    async with classic_stand() as stand:
        committed: list[Partitions] = []

        async def hold(event: str, partitions: Partitions) -> None:
            if event == "revoked" and commits:
                await member.commit(dict.fromkeys(partitions, 5))
                committed.append(partitions)

        async def work() -> None:
            async with member:
                await asyncio.sleep(3_600)

        member = make_classic(stand, hold=hold)
        working = asyncio.create_task(work())
        await until(lambda: member.assignment == ALL)
        engine = member._engine
        assert engine is not None
        assert engine._main is not None
        assert engine._heartbeats.task is not None
        for task in (engine._main, engine._heartbeats.task, working):
            task.cancel()
        await asyncio.wait((working,))
        assert committed == [ALL] * commits
        described = await stand.runtime.call(DescribeGroups(INTERNAL, (GroupId("billing"),)))
        assert isinstance(described, DescribeGroupsResponse)
        assert not described.groups[0].members
