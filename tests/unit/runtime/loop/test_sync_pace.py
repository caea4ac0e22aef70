"""When the loop waits for a sync, and when a thread does."""

from __future__ import annotations

from coordinator.runtime.loop.sync_pace import BRIEF_US, LONG_US, WINDOW, SyncPace
from tests.support.virtual.server import VirtualServer
from tests.unit.runtime.commands.committer import Committer


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


def test_a_thread_that_waits_for_the_interpreter_does_not_make_the_disk_slow() -> None:
    """Trigger: commits under load; the loop stayed with the thread, at half as much CPU again."""
    pace = SyncPace()
    for took_us in (BRIEF_US, 3 * BRIEF_US, 3 * BRIEF_US, 3 * BRIEF_US) * (WINDOW // 4):
        pace.note(took_us)
    assert pace.waits
    pace = SyncPace()
    for took_us in (BRIEF_US, *[3 * BRIEF_US] * 7) * (WINDOW // 8):
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


def waiting() -> VirtualServer:
    server = VirtualServer({"foo": 4})
    server.scheduler.waits_for_syncs = True
    return server


def test_a_flush_that_is_waited_for_takes_all_that_comes_in_the_turns_before_it() -> None:
    server = waiting()
    first, second = Committer(server, "g"), Committer(server, "h")
    syncs = server.runtime.stats.flushes
    assert first.commit(0, 5)
    server.scheduler.step()
    assert second.commit(0, 6)
    assert not first.released
    server.settle()
    assert (first.released, second.released) == (1, 1)
    assert server.runtime.stats.flushes == syncs + 1


def test_a_flush_does_not_wait_for_ever_for_those_who_always_have_more() -> None:
    server = waiting()
    committer = Committer(server, "g")
    for number in range(100):
        assert committer.commit(0, number)
        server.scheduler.step()
        if committer.released:
            return
    raise AssertionError("nobody was answered")


def test_what_is_more_than_commits_is_never_waited_for() -> None:
    """Trigger: the many small steps of a rebalance; the loop read no requests during each sync."""
    server = waiting()
    server.scheduler.blocking_ms = lambda: 10
    committer = Committer(server, "g")
    assert committer.commit(0, 5)
    joining = server.submit(server.join_command("h", "a", ["foo"]))
    server.advance(9)
    assert not committer.released
    assert not joining.is_answered
    server.advance(1)
    assert committer.released
    assert joining.is_answered
    assert committer.commit(0, 6)
    server.advance(0)
    assert committer.released == 2


def test_nothing_is_answered_where_a_sync_that_is_waited_for_fails() -> None:
    server = waiting()
    committer = Committer(server, "g")

    def fail() -> None:
        raise OSError("no sync")

    server.store.sync = fail  # type: ignore[method-assign]
    assert committer.commit(0, 5)
    server.settle()
    assert not committer.released
    assert len(server.failures) == 1
