"""The wall time that commands see."""

from __future__ import annotations

from coordinator.runtime.clock import BELIEVED_AHEAD_MS, SteadyClock
from model.configs.coordinator_settings import CoordinatorSettings
from tests.support.virtual.scheduler import VirtualScheduler
from tests.support.virtual.server import VirtualServer

HOUR_MS = 3_600_000


def test_wall_time_never_goes_below_what_was_persisted() -> None:
    machine = VirtualScheduler()
    clock = SteadyClock(machine)
    persisted = clock.now().wall_ms
    clock.note_persisted(persisted)
    machine.wall_offset_ms -= HOUR_MS
    assert clock.now().wall_ms == persisted


def test_wall_time_is_believed_an_hour_ahead_and_no_more() -> None:
    machine = VirtualScheduler()
    clock = SteadyClock(machine)
    persisted = clock.now().wall_ms
    clock.note_persisted(persisted)
    machine.now_ms += 500
    machine.wall_offset_ms += 100 * HOUR_MS
    assert clock.now().wall_ms == persisted + 500 + BELIEVED_AHEAD_MS


def test_a_restart_remembers_what_was_persisted() -> None:
    """Bug: after the clock was set back an hour, a restart delayed the next target by that hour."""
    settings = CoordinatorSettings(group_consumer_assignment_interval_ms=1_000)
    server = VirtualServer({"foo": 2}, settings=settings)
    server.join("g", "a", ["foo"])
    server.scheduler.wall_offset_ms -= HOUR_MS
    server.restart()
    server.join("g", "b", ["foo"])
    server.advance(1_000)
    assert server.group("g").target_epoch == server.group("g").group_epoch == 3


def test_a_start_after_a_long_time_believes_the_clock() -> None:
    """Trigger: the downtime of a process is unknown; its records would be dated hours too early."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.crash()
    server.scheduler.now_ms += 100 * HOUR_MS
    server.start()
    assert server.runtime._clock.now().wall_ms == server.scheduler.wall_ms()
