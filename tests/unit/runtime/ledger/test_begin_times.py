"""Times of entries: in the order of a group's epochs, however slow the clock is."""

from __future__ import annotations

import pytest

from coordinator.runtime.ledger import begin_times
from coordinator.runtime.ledger.begin_times import BeginTimes
from model.ids import GroupId

G, H = GroupId("g"), GroupId("h")


def test_a_group_that_is_made_again_is_later() -> None:
    times = BeginTimes()
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
    times = BeginTimes()
    for number in range(100):
        times.compute(GroupId(f"g{number}"), 5, is_first=True)
    assert len(times._latest) == 100
    times.compute(G, 6, is_first=True)
    assert set(times._latest) == {G}


def test_very_many_are_forgotten_while_the_clock_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(begin_times, "KEPT_MAX", 1)
    times = BeginTimes()
    times.compute(G, 5, is_first=True)
    times.compute(H, 5, is_first=True)
    assert times.compute(H, 5, is_first=True) == 6
    assert times.compute(G, 5, is_first=True) == 5
