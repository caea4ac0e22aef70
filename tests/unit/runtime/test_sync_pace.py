"""When the loop waits for a sync, and when a thread does."""

from __future__ import annotations

from coordinator.runtime.sync_pace import BRIEF_US, LONG_US, WINDOW, SyncPace
from tests.sim.server import VirtualServer


def note(pace: SyncPace, took_us: int, times: int = WINDOW) -> None:
    for _ in range(times):
        pace.note(took_us)


def test_nobody_waits_before_the_disk_has_shown_that_it_is_quick() -> None:
    pace = SyncPace()
    assert not pace.waits
    note(pace, BRIEF_US, WINDOW - 1)
    assert not pace.waits
    pace.note(BRIEF_US)
    assert pace.waits


def test_a_few_that_take_longer_change_nothing_and_many_do() -> None:
    pace = SyncPace()
    for took_us in (BRIEF_US, BRIEF_US, BRIEF_US, BRIEF_US + 1) * (WINDOW // 4):
        pace.note(took_us)
    assert pace.waits
    for took_us in (BRIEF_US, BRIEF_US + 1) * (WINDOW // 2):
        pace.note(took_us)
    assert not pace.waits


def test_a_slow_disk_is_never_waited_for() -> None:
    pace = SyncPace()
    note(pace, 200_000, 100 * WINDOW)
    assert not pace.waits


def test_one_long_sync_ends_it_and_each_that_follows_for_longer() -> None:
    pace = SyncPace()
    windows = []
    for _ in range(4):
        count = 0
        while not pace.waits:
            note(pace, 100)
            count += 1
        windows.append(count)
        pace.note(LONG_US + 1)
        assert not pace.waits
    assert windows == [1, 1, 2, 4]


def test_where_all_is_well_again_a_long_sync_costs_little() -> None:
    pace = SyncPace()
    for _ in range(5):
        while not pace.waits:
            pace.note(100)
        pace.note(LONG_US + 1)
    while not pace.waits:
        pace.note(100)
    note(pace, 100, 10 * WINDOW)
    assert pace.waits
    pace.note(LONG_US + 1)
    note(pace, 100)
    assert pace.waits


def test_a_flush_that_is_waited_for_takes_all_that_comes_in_the_turns_before_it() -> None:
    server = VirtualServer({"foo": 4})
    server.scheduler.waits_for_syncs = True
    syncs = server.runtime.stats.flushes
    first = server.submit(server.commit_command("g", "", None, "foo", {0: 1}))
    server.scheduler.step()
    second = server.submit(server.commit_command("h", "", None, "foo", {0: 1}))
    assert not first.is_answered
    server.settle()
    assert first.is_answered
    assert second.is_answered
    assert server.runtime.stats.flushes == syncs + 1


def test_a_flush_does_not_wait_for_ever_for_those_who_always_have_more() -> None:
    server = VirtualServer({"foo": 4})
    server.scheduler.waits_for_syncs = True
    first = server.submit(server.commit_command("g", "", None, "foo", {0: 1}))
    for number in range(100):
        server.submit(server.commit_command(f"g{number}", "", None, "foo", {0: 1}))
        server.scheduler.step()
        if first.is_answered:
            return
    raise AssertionError("nobody was answered")


def test_nothing_is_answered_where_a_sync_that_is_waited_for_fails() -> None:
    server = VirtualServer({"foo": 4})
    server.scheduler.waits_for_syncs = True

    def fail() -> None:
        raise OSError("no sync")

    server.store.sync = fail  # type: ignore[method-assign]
    pending = server.submit(server.commit_command("g", "", None, "foo", {0: 1}))
    server.settle()
    assert not pending.is_answered
    assert len(server.failures) == 1
