"""Times of entries: in the order of a group's epochs, however slow the clock is."""

from __future__ import annotations

import pytest

from coordinator.runtime.clock import SteadyClock, SystemClock
from coordinator.runtime.ledger import begin_times
from coordinator.runtime.ledger.begin_times import BeginTimes
from model.ids import GroupId

G, H = GroupId("g"), GroupId("h")


def make_times(found_ms: int = -1_000_000, **last_ms: int) -> BeginTimes:
    """Of a start that found this time in the log, and entries of these times in the store."""
    clock = SteadyClock(SystemClock())
    clock.found_ms = found_ms
    return BeginTimes(clock, last_ms.get)


def test_a_group_that_is_made_again_is_later() -> None:
    times = make_times()
    assert times.compute(G, 5, is_first=True) == 5
    assert times.compute(G, 5, is_first=False) == 5
    assert times.compute(H, 5, is_first=True) == 5
    assert times.compute(G, 5, is_first=True) == 6
    assert times.compute(G, 5, is_first=False) == 6
    # The clock is where the last one was put; then it is beyond.
    assert times.compute(G, 6, is_first=True) == 7
    assert times.compute(G, 6, is_first=False) == 7
    assert times.compute(G, 9, is_first=True) == 9


def test_only_those_of_now_are_kept() -> None:
    times = make_times()
    for number in range(100):
        times.compute(GroupId(f"g{number}"), 5, is_first=True)
    assert len(times._latest) == 100
    times.compute(G, 6, is_first=True)
    assert set(times._latest) == {G}


def test_very_many_are_forgotten_while_the_clock_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(begin_times, "KEPT_MAX", 1)
    times = make_times()
    times.compute(G, 5, is_first=True)
    times.compute(H, 5, is_first=True)
    assert times.compute(H, 5, is_first=True) == 6
    assert times.compute(G, 5, is_first=True) == 5


def test_entries_from_before_the_start_are_earlier_while_the_clock_stands_still() -> None:
    times = make_times(found_ms=5, g=7)
    assert times.compute(H, 5, is_first=True) == 5
    assert times.compute(G, 5, is_first=False) == 7
    assert times.compute(G, 5, is_first=True) == 8
    assert make_times(found_ms=5, g=7).compute(G, 5, is_first=True) == 8
    # The clock has moved on.
    assert make_times(found_ms=5, g=7).compute(G, 9, is_first=True) == 9
    later_ms = 6 + begin_times.LOOKED_UP_MS
    assert make_times(found_ms=5, g=1 << 60).compute(G, later_ms, is_first=True) == later_ms
