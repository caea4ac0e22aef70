"""How members end: none ends another one, and whoever asks is told why it is none any more."""

from __future__ import annotations

import asyncio
import time

import pytest

import muster
from muster.classic.classic_membership import Lost
from muster.classic.member_rebalance import JoinAgain
from muster.connection import shared_clients
from muster.connection.lease import read_clock
from muster.member_sender import MemberSender
from muster.membership import Partitions
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import make_classic
from tests.unit.sdk.test_member import ALL, make_member


async def test_a_close_ends_a_join_that_waits(stand: Stand) -> None:
    """Both would give the shared connection back: the second time it is another member's."""
    async with muster.Member(stand.target, "work", topics=["orders"]) as bystander:
        await until(lambda: len(bystander.assignment) == 4)
        holder = muster.Client(stand.target)
        first = muster.Member(holder, "g", topics=["orders"], instance_id="i")
        await first.join()
        second = muster.Member(stand.target, "g", topics=["orders"], instance_id="i")
        joining = asyncio.create_task(second.join())
        assert second._engine is None
        await until(lambda: second._engine is not None and second._engine._refusal is not None)
        await second.close()
        with pytest.raises(muster.MemberLost, match="closed"):
            await joining
        assert [users for _, users in shared_clients._SHARED.values()] == [1]
        assert bystander.poll() == ALL
        await first.close(for_good=True)
        await holder.close()


async def test_a_close_ends_a_classic_join_that_waits() -> None:
    async with (
        running_stand(initial_rebalance_delay_ms=60_000) as stand,
        muster.Member(stand.target, "work", topics=["orders"]) as bystander,
    ):
        await until(lambda: len(bystander.assignment) == 4)
        member = make_classic(stand)
        joining = asyncio.create_task(member.join())
        await until(lambda: member.member_id)
        await member.close()
        with pytest.raises(muster.MemberLost, match="closed"):
            await joining
        assert [users for _, users in shared_clients._SHARED.values()] == [1]


async def test_a_poll_within_a_plain_on_lost_loses_nothing_twice(stand: Stand) -> None:
    lost: list[Partitions] = []

    def on_lost(partitions: Partitions) -> None:
        lost.append(partitions)
        assert len(lost) < 5
        member.poll()

    # A plain callback: one that still ran would hold on_lost back.
    member = make_member(stand, on_assigned=lambda _: None, on_lost=on_lost)
    await member.join()
    await until(lambda: member.assignment == ALL)
    assert member._engine is not None
    member._engine.leave_at_once(muster.PollIntervalExceeded("not called"))
    assert lost == [ALL]
    await until(lambda: member.assignment == ALL)
    await member.close()


async def test_a_callback_cannot_close_its_own_member_in_a_task_either(stand: Stand) -> None:
    """``asyncio.wait_for`` makes one; both would wait for each other."""
    raised: list[BaseException] = []

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked" and not raised:
            try:
                await asyncio.wait_for(member.close(), 30)
            except muster.MusterError as error:
                raised.append(error)

    member = make_member(stand, hold=hold)
    await member.join()
    await until(lambda: member.assignment == ALL)
    async with make_member(stand, name="b") as other:
        await until(lambda: len(other.assignment) == 2)
        assert "a callback cannot close its own member" in str(raised[0])
        await member.close()


async def test_a_callback_that_has_returned_may_have_its_member_closed(stand: Stand) -> None:
    closing: list[asyncio.Task[None]] = []

    def on_assigned(partitions: Partitions) -> None:
        closing.append(asyncio.create_task(member.close()))

    member = make_member(stand, on_assigned=on_assigned)
    await member.join()
    await until(lambda: closing)
    await closing[0]
    await stand.until_empty("billing")


async def test_a_client_that_is_closed_tells_its_members(stand: Stand) -> None:
    client = muster.Client(stand.target)
    lost: list[Partitions] = []
    member = make_member(client, on_lost=lost.append)
    await member.join()
    await until(lambda: member.assignment == ALL)
    await client.close()
    assert lost == [ALL]
    with pytest.raises(muster.MemberLost, match="client was closed"):
        member.poll()
    with pytest.raises(muster.MemberLost, match="client was closed"):
        await member.commit({muster.TopicPartition("orders", 0): 1})
    with pytest.raises(muster.MemberLost, match="client was closed"):
        await member.fetch_offsets()
    await member.close()
    await stand.until_empty("billing")


async def test_a_client_that_is_closed_tells_classic_members_too() -> None:
    async with running_stand(
        min_classic_session_timeout_ms=100, initial_rebalance_delay_ms=0
    ) as stand:
        client = muster.Client(stand.target)
        lost: list[Partitions] = []
        member = make_classic(client, on_lost=lost.append)
        await member.join()
        await until(lambda: member.assignment == ALL)
        await client.close()
        await until(lambda: lost == [ALL])
        with pytest.raises(muster.MemberLost, match="client was closed"):
            member.poll()
        await member.close()


@pytest.mark.parametrize("has_come", [True, False])
async def test_a_server_that_was_not_heard_because_nobody_listened_is_not_silent(
    stand: Stand, has_come: bool
) -> None:
    """A loop that is blocked finds the time over before it reads what has come."""
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
        assert member._engine is not None
        client = member._engine.client
        stream = client._stream
        assert stream is not None
        stream.received_at -= 2 * client._silence.limit_s
        client._on_timer()
        assert not stream._is_broken
        if has_come:
            stream.received_at = read_clock()
        client._on_timer()
        assert stream._is_broken is not has_come


async def test_who_joins_right_after_the_last_one_left_waits_for_nothing(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = muster.Client(stand.target)
    delays: list[float] = []

    async def note(backoff_s: float) -> None:
        delays.append(backoff_s)

    monkeypatch.setattr(client, "_back_off", note)
    for _ in range(5):
        async with make_member(client):
            pass
    await client.close()
    assert delays == []


# --------------------------------------------------------------------------- limits of time


async def test_a_close_has_a_time_limit(stand: Stand) -> None:
    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await asyncio.sleep(3_600)

    member = make_member(stand, hold=hold)
    await member.join()
    await until(lambda: member.assignment == ALL)
    await member.close(timeout_ms=20)
    await stand.until_empty("billing")
    assert member.assignment == frozenset()
    with pytest.raises(muster.CallbackFailed, match=r"on_revoked was cancelled: .* 20 ms"):
        await member.__aexit__(None, None, None)


async def test_by_default_a_close_takes_no_longer_than_a_rebalance(stand: Stand) -> None:
    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await asyncio.sleep(3_600)

    member = make_member(stand, hold=hold, rebalance_timeout_ms=50)
    await member.join()
    await until(lambda: member.assignment == ALL)
    with pytest.raises(muster.CallbackFailed, match=r"on_revoked was cancelled: .* 50 ms"):
        await member.__aexit__(None, None, None)
    await stand.until_empty("billing")


async def test_a_callback_that_does_not_end_when_it_is_cancelled_is_left_behind(
    brisk: Stand,
) -> None:
    gate = asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        while event == "revoked" and not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    member = make_member(brisk, hold=hold)
    await member.join()
    await until(lambda: member.assignment == ALL)
    async with asyncio.timeout(30):
        await member.close(timeout_ms=20)
    await brisk.until_empty("billing")
    gate.set()


async def test_a_classic_close_has_a_time_limit() -> None:
    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await asyncio.sleep(3_600)

    async with running_stand(
        min_classic_session_timeout_ms=100, initial_rebalance_delay_ms=0
    ) as stand:
        member = make_classic(stand, hold=hold)
        await member.join()
        await until(lambda: member.assignment == ALL)
        await member.close(timeout_ms=20)
        with pytest.raises(muster.CallbackFailed, match=r"on_revoked was cancelled: .* 20 ms"):
            await member.__aexit__(None, None, None)
        async with make_classic(stand, name="b") as other:
            await until(lambda: other.assignment == ALL)


async def test_an_interval_without_a_poll_is_noticed_where_the_loop_was_blocked(
    stand: Stand,
) -> None:
    lost: list[Partitions] = []
    async with make_member(stand, on_lost=lost.append, max_poll_interval_ms=50) as member:
        await until(lambda: member.poll() == ALL)
        lost.clear()
        time.sleep(0.06)  # noqa: ASYNC251 - that is the fault
        assert member.poll() == frozenset()
        assert lost == [ALL]
        await until(lambda: member.poll() == ALL)


@pytest.mark.parametrize("timeout_ms", [-1, "1", 1.5])
async def test_a_time_limit_is_a_number(stand: Stand, timeout_ms: object) -> None:
    async with make_member(stand) as member:
        with pytest.raises((TypeError, ValueError), match="timeout_ms"):
            await member.close(timeout_ms=timeout_ms)  # type: ignore[arg-type]
        assert not member._is_closing


async def test_an_assignment_that_comes_after_its_lease_is_not_held_untaken() -> None:
    """A heartbeat that was under way begins the lease anew: nobody would read it for ever."""
    async with running_stand(
        min_classic_session_timeout_ms=100, initial_rebalance_delay_ms=0
    ) as stand:
        member = make_classic(stand, heartbeat_interval_ms=1_000)
        await member.join()
        engine = member._engine
        assert engine is not None
        engine.membership.lease._renewed_at = float("-inf")
        for _ in range(3):
            await asyncio.sleep(0)
        engine.membership.lease.note_renewed(read_clock())
        await until(lambda: member.assignment == ALL)
        await member.close()


async def test_a_first_assignment_that_comes_after_its_lease_is_asked_for_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: a process that stood still while it joined left, and waited in vain for being in."""
    compute, late = MemberSender.compute_lease_deadline, iter((True,))

    def compute_late_once(sender: MemberSender) -> float:
        return float("-inf") if next(late, False) else compute(sender)

    monkeypatch.setattr(MemberSender, "compute_lease_deadline", compute_late_once)
    async with make_member(stand, join_timeout_ms=10_000) as member:
        await until(lambda: member.assignment == ALL)
        assert member._engine is not None
        assert member._engine.membership.join_id == 2


async def test_topics_that_there_are_not_are_told(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_member(stand, topics=["orders", "typo"]) as member:
        assert member.unknown_topics == {"typo"}
        assert "unknown_topics group=billing topics=typo" in caplog.text
        await stand.create_topic("typo", 2)
        await until(lambda: len(member.assignment) == 6)
        assert member.unknown_topics == frozenset()


async def test_who_is_lost_while_it_waits_to_join_again_joins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: the member had failed for good, and its application read nothing any more."""
    async with running_stand(
        min_classic_session_timeout_ms=100, initial_rebalance_delay_ms=0
    ) as stand:
        member = make_classic(stand)
        await member.join()
        await until(lambda: member.assignment == ALL)
        engine = member._engine
        assert engine is not None
        go_round, generation = engine._go_round, engine.generation

        async def be_told_to_wait() -> None:
            monkeypatch.setattr(engine, "_go_round", go_round)
            asyncio.get_running_loop().call_soon(engine._lose, Lost("put out", forgets_id=False))
            raise JoinAgain(waits=True)

        monkeypatch.setattr(engine, "_go_round", be_told_to_wait)
        engine.rejoin("a test")
        await until(lambda: engine.generation > generation and member.poll() == ALL)
        await member.close()
