"""What members do when the connection, the server or their own process stops."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import muster
from coordinator.runtime.api import Reply
from coordinator.service.session import group_service
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import CoordinatorNotAvailable
from muster.connection import client as client_module
from muster.connection.stream import Stream
from muster.membership import Partitions
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until
from tests.unit.sdk.connection.proxy import running_proxy
from tests.unit.sdk.test_member import ALL, make_member
from tests.unit.sdk.watcher import Ledger

CHECKOUT = Path(__file__).resolve().parents[4]


def events_of(ledger: Ledger, name: str) -> list[str]:
    return [event for who, event, _ in ledger.events if who == name]


async def test_a_cut_connection_costs_nothing(steady: Stand) -> None:
    ledger = Ledger()
    async with running_proxy(steady.port) as proxy, make_member(proxy.target, ledger) as member:
        await until(lambda: member.assignment == ALL)
        for cut in range(3):
            proxy.cut()
            await member.commit(dict.fromkeys(ALL, cut))
        assert member.assignment == ALL
        assert member.epoch == 2
        assert proxy.accepted >= 3
        assert set((await member.fetch_offsets()).values()) == {muster.OffsetAndMetadata(2)}
        assert events_of(ledger, "m") == ["assigned"]


async def test_another_one_with_the_same_id_waits_for_the_lease_of_the_first() -> None:
    ledger = Ledger()
    async with (
        # Longer than the machine stands still, or the second one is lost as well.
        running_stand(session_timeout_ms=5_000, heartbeat_interval_ms=100) as stand,
        running_proxy(stand.port) as proxy,
    ):
        first = make_member(proxy.target, ledger, "a", member_id="same")
        await first.join()
        await until(lambda: first.assignment == ALL)
        proxy.freeze()
        async with make_member(stand, ledger, "b", member_id="same") as second:
            await until(lambda: second.assignment == ALL)
            assert second.member_id == "same"
            assert first.assignment == frozenset()
            proxy.thaw()
            # It cannot know that there is another one, and waits for that in its turn.
            await first.close()
            assert second.poll() == ALL
    assert ledger.overlaps == []


@pytest.mark.parametrize("identity", [{"instance_id": "i"}, {"member_id": "same"}])
async def test_who_follows_a_member_that_died_waits_for_the_end_of_its_session(
    brisk: Stand, identity: dict[str, Any]
) -> None:
    ledger = Ledger()
    async with (
        running_proxy(brisk.port) as proxy,
        make_member(brisk, ledger, "other") as other,
    ):
        died = make_member(proxy.target, ledger, "died", **identity)
        await died.join()
        await until(lambda: len(died.assignment) == len(other.assignment) == 2)
        proxy.freeze()
        async with make_member(brisk, ledger, "next", **identity) as next_one:
            await until(lambda: len(next_one.assignment) == len(other.assignment) == 2)
            proxy.cut()
            await died.close()
    assert ledger.overlaps == []


def test_who_may_have_to_wait_for_a_session_to_end_waits_longer_than_that() -> None:
    session_timeout_ms = CoordinatorSettings().group_consumer_session_timeout_ms
    assert make_member("s:1", instance_id="i")._join_timeout_ms > session_timeout_ms
    assert make_member("s:1", member_id="same")._join_timeout_ms > session_timeout_ms
    assert make_member("s:1", instance_id="i", join_timeout_ms=7)._join_timeout_ms == 7


async def test_a_server_that_restarts_moves_nothing(stand: Stand) -> None:
    ledger = Ledger()
    async with (
        make_member(stand, ledger, "a") as first,
        make_member(stand, ledger, "b") as second,
    ):
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        await until(lambda: len(ledger.owner_of) == 4)
        before = (first.epoch, first.assignment, second.epoch, second.assignment)
        events = list(ledger.events)
        committing = asyncio.create_task(first.commit(dict.fromkeys(first.assignment, 5)))
        await stand.stop_server()
        assert (first.epoch, first.assignment, second.epoch, second.assignment) == before
        later = asyncio.create_task(second.commit(dict.fromkeys(second.assignment, 6)))
        await asyncio.sleep(0.1)
        await stand.restart()
        await asyncio.gather(committing, later)
        assert (first.epoch, first.assignment, second.epoch, second.assignment) == before
        assert ledger.events == events
        assert set((await first.fetch_offsets()).values()) == {muster.OffsetAndMetadata(5)}
        assert set((await second.fetch_offsets()).values()) == {muster.OffsetAndMetadata(6)}


async def test_a_hundred_members_survive_a_restart_of_the_server(stand: Stand) -> None:
    await stand.create_topic("wide", 200)
    ledger = Ledger()
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(muster.Client(stand.target)) for _ in range(4)]
        members = [
            make_member(clients[number % 4], ledger, f"m{number}", topics=["wide"])
            for number in range(100)
        ]
        await asyncio.gather(*(stack.enter_async_context(member) for member in members))
        await until(lambda: {len(member.assignment) for member in members} == {2})
        await until(lambda: len({member.epoch for member in members}) == 1)
        await until(lambda: len(ledger.owner_of) == 200)
        before = [(member.epoch, member.assignment) for member in members]
        events = list(ledger.events)
        await stand.stop_server()
        await stand.restart()
        commits = (member.commit(dict.fromkeys(member.assignment, 1)) for member in members)
        await asyncio.gather(*commits)
        assert [(member.epoch, member.assignment) for member in members] == before
        assert ledger.events == events


async def test_a_client_that_is_closed_early_takes_its_members_out(brisk: Stand) -> None:
    ledger = Ledger()
    client = muster.Client(brisk.target)
    member = make_member(client, ledger)
    await member.join()
    await until(lambda: member.assignment == ALL)
    await client.close()
    await until(lambda: events_of(ledger, "m") == ["assigned", "lost"])
    assert member.assignment == frozenset()
    await member.close()
    with pytest.raises(muster.MusterError, match="closed"):
        await make_member(client).join()


async def test_a_server_that_fails_again_and_again_is_not_rushed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0

    async def fail(door: object, context: object) -> None:
        nonlocal opened
        opened += 1
        raise CoordinatorNotAvailable("not now")

    async def note(backoff_s: float) -> None:
        delays.append(backoff_s)
        if len(delays) == 6:
            await asyncio.Event().wait()

    delays: list[float] = []
    monkeypatch.setattr(group_service, "serve_session", fail)
    async with muster.Client(stand.target) as client:
        monkeypatch.setattr(client, "_back_off", note)
        with pytest.raises(muster.JoinTimeout, match="not now"):
            await make_member(client, join_timeout_ms=3_000).join()
    assert opened == len(delays) == 6
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]


async def test_a_short_silence_loses_nothing(steady: Stand) -> None:
    ledger = Ledger()
    async with running_proxy(steady.port) as proxy, make_member(proxy.target, ledger) as member:
        await until(lambda: member.assignment == ALL)
        proxy.freeze()
        await asyncio.sleep(0.4)
        proxy.thaw()
        await member.commit(dict.fromkeys(ALL, 1))
        assert member.epoch == 2
        assert events_of(ledger, "m") == ["assigned"]


async def test_a_silent_network_takes_partitions_from_the_old_owner_first(brisk: Stand) -> None:
    """No FIN, no answer: the member gives up by its own clock before the server gives them away."""
    ledger = Ledger()
    async with running_proxy(brisk.port) as proxy:
        lonely = make_member(proxy.target, ledger, "lonely")
        await lonely.join()
        await until(lambda: lonely.assignment == ALL)
        async with make_member(brisk, ledger, "other") as other:
            await until(lambda: len(lonely.assignment) == len(other.assignment) == 2)
            proxy.freeze()
            await until(lambda: other.assignment == ALL)
            assert ledger.overlaps == []
            assert events_of(ledger, "lonely")[-1] == "lost"
            assert lonely.assignment == frozenset()
            with pytest.raises(muster.MemberLost):
                await lonely.commit(dict.fromkeys(ALL, 1))
            proxy.thaw()
            await until(lambda: len(lonely.assignment) == len(other.assignment) == 2)
            assert ledger.overlaps == []
            await lonely.close()


async def test_a_connection_that_is_dead_without_a_word_is_replaced() -> None:
    """The other end is gone and new connections work: the member must not wait for the old one."""
    async with (
        running_stand(session_timeout_ms=8_000, heartbeat_interval_ms=100) as stand,
        running_proxy(stand.port) as proxy,
    ):
        ledger = Ledger()
        async with make_member(proxy.target, ledger) as member:
            await until(lambda: member.assignment == ALL)
            proxy.abandon()
            await member.commit(dict.fromkeys(ALL, 1))
            assert proxy.accepted == 2
            assert member.epoch == 2
            assert events_of(ledger, "m") == ["assigned"]


async def test_partitions_revoked_while_disconnected_stay_revoked(steady: Stand) -> None:
    """The stream breaks in the middle of a revocation; what is resumed is what is left."""
    ledger, gate = Ledger(), asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await gate.wait()

    async with running_proxy(steady.port) as proxy:
        slow = make_member(proxy.target, ledger, "slow", hold)
        await slow.join()
        await until(lambda: slow.assignment == ALL)
        async with make_member(steady, ledger, "quick") as quick:
            await until(lambda: "revoked" in events_of(ledger, "slow"))
            proxy.cut()
            await until(lambda: proxy.accepted == 2)
            await slow.commit(dict.fromkeys(ALL, 3))
            assert quick.assignment == frozenset()
            gate.set()
            await until(lambda: len(quick.assignment) == len(slow.assignment) == 2)
            assert ledger.overlaps == []
            assert events_of(ledger, "slow") == ["assigned", "revoked"]
        await slow.close()


async def test_a_coordinator_that_cannot_write_is_asked_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: joins and acknowledgements are refused for a while, and then go through."""
    submit = stand.runtime.submit
    full = asyncio.Event()
    full.set()
    refused = 0

    def submit_or_refuse(command: Command, reply: Reply) -> None:
        nonlocal refused
        if full.is_set() and isinstance(command, ConsumerGroupHeartbeat):
            refused += 1
            reply(CoordinatorNotAvailable("full"))
        else:
            submit(command, reply)

    monkeypatch.setattr(stand.runtime, "submit", submit_or_refuse)
    member = make_member(stand)
    joining = asyncio.create_task(member.join())
    await until(lambda: refused >= 2)
    full.clear()
    await joining
    await until(lambda: member.assignment == ALL)
    refused = 0
    async with make_member(stand, name="other") as other:
        full.set()
        await until(lambda: refused >= 2)
        full.clear()
        await until(lambda: len(member.assignment) == len(other.assignment) == 2)
    await member.close()


# ------------------------------------------------------------------ processes that stand still


class LoneMember:
    """The program of ``lone_member.py``; ``lines`` are (time, event, partitions)."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[tuple[float, str, str]] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            at, event, *partitions = line.decode().split()
            self.lines.append((float(at), event, partitions[0] if partitions else ""))

    def first_after(self, at: float) -> tuple[float, str, str]:
        return next(line for line in self.lines if line[0] > at)

    async def end(self) -> None:
        self.process.kill()
        await self.process.wait()
        await self.reading


async def start_lone_member(stand: Stand) -> LoneMember:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("lone_member.py")),
        stand.target,
        "billing",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    lone = LoneMember(process)
    await until(lambda: any(event == "owns" and owned for _, event, owned in lone.lines))
    return lone


async def stop_process(lone: LoneMember, until_lost: Callable[[], object]) -> float:
    lone.process.send_signal(signal.SIGSTOP)
    await until(until_lost)
    resumed_at = time.monotonic()
    lone.process.send_signal(signal.SIGCONT)
    return resumed_at


async def hang_loop(lone: LoneMember, until_lost: Callable[[], object]) -> float:
    """Only the event loop stands still: gRPC's threads, and so HTTP/2, go on."""
    assert lone.process.stdin is not None
    lone.process.stdin.write(b"hang\n")
    await until(until_lost)
    resumed_at = time.monotonic()
    lone.process.stdin.write(b"go on\n")
    return resumed_at


@pytest.mark.parametrize("stand_still", [stop_process, hang_loop])
async def test_a_process_that_stands_still_loses_its_partitions(
    brisk: Stand, stand_still: Callable[[LoneMember, Callable[[], object]], object]
) -> None:
    lone = await start_lone_member(brisk)
    try:
        async with make_member(brisk, name="other") as other:
            await until(lambda: len(other.assignment) == 2)
            resumed_at = await stand_still(lone, lambda: other.assignment == ALL)  # type: ignore[misc]
            await until(lambda: lone.lines[-1][0] > resumed_at and len(other.assignment) == 2)
            # Whatever it did first when it came back, it did not believe to own anything.
            _, event, partitions = lone.first_after(resumed_at)
            assert (event, partitions) == ("owns", "") or event == "lost"
            assert "lost" in {event for _, event, _ in lone.lines}
    finally:
        await lone.end()


@pytest.mark.parametrize("method", ["on_stream", "on_update", "check_lease"])
async def test_what_goes_wrong_within_one_member_ends_no_other(
    steady: Stand, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    async with running_proxy(steady.port) as proxy, make_member(proxy.target) as member:
        other = muster.Member(proxy.target, "another", topics=["orders"])
        await other.join()
        await until(lambda: member.assignment == other.assignment == ALL)
        engine = other._engine
        assert engine is not None
        monkeypatch.setattr(engine, method, fail)
        proxy.cut()
        await until(lambda: engine.failure is not None)
        with pytest.raises(muster.MusterError, match="RuntimeError: a fault of ours"):
            other.poll()
        await member.commit(dict.fromkeys(ALL, 1))
        assert member.poll() == ALL
        await other.close()


async def test_a_stream_that_cannot_be_opened_is_tried_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0

    def fail_twice(*arguments: Any) -> Stream:
        nonlocal attempts
        attempts += 1
        if attempts <= 2:
            raise RuntimeError("a fault of ours")
        return Stream(*arguments)

    monkeypatch.setattr(client_module, "Stream", fail_twice)
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
    assert attempts == 3
