"""Deadlines on the loop: late ticks, earlier arrivals, and refused expiries."""

from __future__ import annotations

import pytest

from coordinator.core.deadlines.stalls import GRACE_MS, PARDON_AGAIN_MS
from coordinator.runtime.api import Answer
from coordinator.runtime.commands import command_turns
from model.commands.command import Command
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId
from model.responses.classic import ClassicHeartbeatResponse
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.support.free_space import set_free_space
from tests.support.virtual.server import VirtualServer
from tests.unit.runtime.members.test_signs_of_life import join_classic

SESSION_MS = 45_000
OTHER = GroupId("other")


def members(server: VirtualServer) -> list[str]:
    return sorted(member.member_id for member in server.group("g").members())


def joined(**settings: int) -> VirtualServer:
    server = VirtualServer({"foo": 2}, settings=CoordinatorSettings(**settings))  # type: ignore[arg-type]
    server.join("g", "a", ["foo"])
    return server


def test_a_silent_member_expires_after_the_session_timeout_and_not_before() -> None:
    server = joined()
    server.advance(SESSION_MS - 1)
    assert members(server) == ["a"]
    server.advance(300)
    assert members(server) == []
    assert server.runtime.stats.members_expired == {"session": 1}


def test_a_heartbeat_begins_the_session_anew() -> None:
    server = joined()
    server.advance(SESSION_MS - 1)
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(SESSION_MS - 1)
    assert members(server) == ["a"]
    server.advance(300)
    assert members(server) == []


def test_a_refused_heartbeat_does_not() -> None:
    server = joined()
    server.advance(SESSION_MS - 1)
    server.ask(server.heartbeat("g", "a", 7))
    server.advance(300)
    assert members(server) == []


def test_a_touch_does() -> None:
    server = joined()
    server.advance(SESSION_MS - 1)
    assert server.runtime.touch(
        server.group("g").group_id, server.join_command("g", "a", []).member_id
    )
    server.advance(300)
    assert members(server) == ["a"]


@pytest.mark.parametrize("stall_at_ms", [SESSION_MS - 10, SESSION_MS])
def test_a_stall_of_our_own_expires_nobody(stall_at_ms: int) -> None:
    """Trigger: the process stalls before its tick, or between the tick and the check."""
    server = joined()
    server.advance(stall_at_ms)
    server.scheduler.now_ms += 20_000
    server.settle()
    # What the client sent meanwhile is read now, in the turn after the timers'.
    assert members(server) == ["a"]
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(SESSION_MS - 1)
    assert members(server) == ["a"]
    server.advance(300)
    assert members(server) == []


@pytest.mark.parametrize("session_ms", [6_000, 45_000])
@pytest.mark.parametrize("turn_ms", [40, 51, 80, 500, 1_999, 5_000, 30_000])
def test_a_silent_member_expires_under_load_of_any_kind(turn_ms: int, session_ms: int) -> None:
    """Bug: if each iteration took over 50 ms, each moved all deadlines, and no member expired."""
    server = joined(
        group_consumer_session_timeout_ms=session_ms,
        group_consumer_min_session_timeout_ms=session_ms,
    )
    for number in range(session_ms // 100):
        # Whatever is due then, there is a tick every 100 ms.
        server.runtime.liveness.heard(OTHER, MemberId(f"m{number}"), server.scheduler.now_ms)
        server.advance(100)
    server.beat(server.heartbeat("g", "a", 2))
    heard_ms = server.scheduler.now_ms
    late_ms = turn_ms if turn_ms > GRACE_MS else GRACE_MS
    bound_ms = session_ms + (1 + session_ms // PARDON_AGAIN_MS) * late_ms
    while members(server):
        server.scheduler.take_turn(turn_ms)
        silent_ms = server.scheduler.now_ms - heard_ms
        assert silent_ms <= bound_ms + 6 * turn_ms
    assert silent_ms >= session_ms


def test_a_pause_of_20_s_expires_nobody_who_speaks_right_after() -> None:
    server = joined(
        group_consumer_session_timeout_ms=6_000, group_consumer_min_session_timeout_ms=6_000
    )
    server.advance(5_900)
    server.scheduler.take_turn(20_000)
    server.scheduler.take_turn(90)
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(5_900)
    assert members(server) == ["a"]


def test_commands_that_wait_are_handled_before_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trigger: the heartbeat arrived in time, and is queued behind very many others."""
    monkeypatch.setattr(command_turns, "SLICE", 1)
    server = joined()
    server.advance(SESSION_MS - 1)
    for _ in range(40):
        server.submit(server.heartbeat("nobody", "x", 2))
    server.submit(server.heartbeat("g", "a", 2))
    while server.runtime.parts.turns.is_busy:
        server.scheduler.take_turn(25)
    assert members(server) == ["a"]
    server.advance(SESSION_MS)
    assert members(server) == []


def test_what_arrived_before_a_deadline_is_handled_before_it() -> None:
    """Trigger: tick and heartbeat are due in one iteration, the tick first."""
    server = joined()
    beat = server.heartbeat("g", "a", 2)
    tick_ms = server.runtime.parts.timers._at_ms
    server.scheduler.call_later_ms(
        tick_ms - server.scheduler.now_ms, lambda: server.runtime.submit(beat, lambda _: None)
    )
    server.advance(SESSION_MS + 1_000)
    assert members(server) == ["a"]


def look_in_a_busy_turn(server: VirtualServer, *said: Command) -> list[Answer]:
    """The members' requests are read before the timer checks, and queued for a later iteration."""
    answers: list[Answer] = []
    timers = server.runtime.parts.timers
    look = timers._look

    def look_last() -> None:
        timers._look = look  # type: ignore[method-assign]
        for n in range(command_turns.SLICE):
            server.submit(server.heartbeat("other", f"m{n}", 9))
        for command in said:
            server.runtime.submit(command, answers.append)
        look()

    timers._look = look_last  # type: ignore[method-assign]
    server.advance(300)
    return answers


def test_what_waits_for_its_turn_is_handled_before_a_deadline() -> None:
    server = joined()
    server.advance(SESSION_MS - 1)
    (answer,) = look_in_a_busy_turn(server, server.heartbeat("g", "a", 2))
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert members(server) == ["a"]
    server.advance(SESSION_MS - 1_000)
    assert members(server) == ["a"]
    server.advance(2_000)
    assert members(server) == []


def test_what_waits_for_its_turn_leaves_the_rebalance_timeout() -> None:
    server = revoking(60_000)
    server.advance(SESSION_MS - 1)
    look_in_a_busy_turn(server, server.heartbeat("g", "a", 2))
    assert members(server) == ["a"]
    server.advance(10_000)
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(10_000)
    assert members(server) == []


def test_a_classic_member_that_is_told_that_all_is_well_is_not_removed_in_the_same_turn() -> None:
    server = VirtualServer({"foo": 2})
    heartbeat = join_classic(server)
    server.advance(9_999)
    (answer,) = look_in_a_busy_turn(server, heartbeat)
    assert isinstance(answer, ClassicHeartbeatResponse)
    assert isinstance(server.ask(heartbeat), ClassicHeartbeatResponse)


def test_a_member_that_does_not_revoke_is_removed_at_its_rebalance_timeout() -> None:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"], timeout_ms=10_000)
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(9_999)
    server.beat(server.heartbeat("g", "a", 2))
    assert members(server) == ["a", "b"]
    server.advance(300)
    assert members(server) == ["b"]
    assert server.runtime.stats.members_expired == {"rebalance": 1}


def test_a_member_that_revokes_in_time_stays() -> None:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"], timeout_ms=10_000)
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(9_000)
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0,)}))
    server.advance(9_000)
    assert members(server) == ["a", "b"]


def revoking(timeout_ms: int) -> VirtualServer:
    """``a`` must revoke a partition for ``b`` within the timeout."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"], timeout_ms=timeout_ms)
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    return server


def stay(server: VirtualServer, for_ms: int) -> None:
    """Both heartbeat, and ``a`` revokes nothing."""
    server.advance(for_ms)
    server.beat(server.heartbeat("g", "a", 2))
    server.beat(server.heartbeat("g", "b", 3))


def test_the_rebalance_timeout_runs_anew_after_a_restart() -> None:
    server = revoking(60_000)
    stay(server, 30_000)
    server.advance(20_000)
    server.restart()
    stay(server, 30_000)
    server.advance(29_999)
    assert members(server) == ["a", "b"]
    server.advance(300)
    assert members(server) == ["b"]


def test_after_a_restart_no_rebalance_timeout_passes_within_a_session() -> None:
    """A streaming member may rely on a session that began before the restart."""
    server = revoking(10_000)
    server.advance(9_000)
    server.restart()
    stay(server, 30_000)
    server.advance(14_999)
    assert members(server) == ["a", "b"]
    server.advance(300)
    assert members(server) == ["b"]


def test_an_expiry_that_is_refused_comes_again() -> None:
    """Bug: the disk filled up between check and expiry; the member was never removed."""
    server = joined(log_min_free_bytes=100)
    answers = iter([1_000, 10])
    set_free_space(server.runtime, lambda: next(answers, 1_000), 100)
    clock = server.scheduler
    is_held = server.runtime.parts.timers._is_held

    def held_and_then_a_moment() -> bool:
        held = is_held()
        clock.now_ms += 1_000
        return held

    server.runtime.parts.timers._is_held = held_and_then_a_moment
    server.advance(SESSION_MS + 300)
    assert members(server) == ["a"]
    server.advance(2 * SESSION_MS)
    assert members(server) == []


def test_a_session_whose_end_is_refused_leaves_the_rebalance_timeout() -> None:
    """Bug: the member came back, revoked nothing, and was never removed."""
    server = VirtualServer({"foo": 2}, settings=CoordinatorSettings(log_min_free_bytes=100))
    server.join("g", "a", ["foo"], timeout_ms=2 * SESSION_MS)
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(SESSION_MS - 100)
    server.beat(server.heartbeat("g", "b", 3))
    answers = iter([1_000, 10])
    set_free_space(server.runtime, lambda: next(answers, 1_000), 100)
    clock = server.scheduler
    is_held = server.runtime.parts.timers._is_held

    def held_and_then_a_moment() -> bool:
        held = is_held()
        clock.now_ms += 1_000
        return held

    server.runtime.parts.timers._is_held = held_and_then_a_moment
    server.advance(200)
    server.runtime.parts.timers._is_held = is_held
    assert members(server) == ["a", "b"]
    stay(server, SESSION_MS // 2)
    assert members(server) == ["a", "b"]
    server.advance(SESSION_MS // 2)
    assert members(server) == ["b"]
    assert server.runtime.stats.members_expired["rebalance"] == 1


def test_what_is_heard_after_a_stall_is_not_moved_by_it() -> None:
    """Bug: requests are read before the late tick, which then extended those sessions too."""
    server = joined()
    server.scheduler.now_ms += 100_000
    server.runtime.submit(server.heartbeat("g", "a", 2), lambda _: None)
    server.advance(SESSION_MS - 1)
    assert members(server) == ["a"]
    server.advance(300)
    assert members(server) == []


def test_a_rebalance_timeout_that_begins_after_a_stall_is_not_moved_by_it() -> None:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"], timeout_ms=10_000)
    server.join("g", "b", ["foo"])
    server.scheduler.now_ms += 100_000
    server.runtime.submit(server.heartbeat("g", "b", 3), lambda _: None)
    server.runtime.submit(server.heartbeat("g", "a", 2), lambda _: None)
    server.advance(10_300)
    assert members(server) == ["b"]
