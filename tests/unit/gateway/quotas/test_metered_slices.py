"""The time of work in slices counts for the client that has begun it, slice by slice."""

from __future__ import annotations

import pytest

from coordinator.runtime.loop.slices import Paced, Slices
from gateway.quotas.metered_slices import MeteredSlices
from tests.support.gateway.fake_coordinator import VirtualClock


class Stand:
    """Work of which each slice takes a second longer than the one before."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.spent_s = 0.0
        self.noted: list[float] = []
        slices = Slices(
            lambda callback: self.clock.call_later(0, callback),
            lambda ms, callback: self.clock.call_later(ms / 1_000, callback),
            lambda: self.spent_s * 1_000,
        )
        self.slices = MeteredSlices(slices, lambda: self.spent_s, self.noted.append)

    def work(self) -> Paced[None]:
        for seconds in (1.0, 2.0):
            self.spent_s += seconds
            yield None
        self.spent_s += 3.0

    def fail(self) -> Paced[None]:
        yield from self.work()
        raise ValueError

    def finish(self) -> None:
        while self.clock.turn():
            pass


def test_each_slice_is_noted_when_it_is_done() -> None:
    stand = Stand()
    stand.slices.run(stand.work())
    assert stand.noted == [1.0]
    stand.finish()
    assert stand.noted == [1.0, 2.0, 3.0]


def test_a_slice_that_fails_is_noted_too() -> None:
    stand = Stand()
    failures: list[Exception] = []
    stand.slices.go_on(stand.fail(), failures.append)
    assert stand.noted == []
    stand.finish()
    assert stand.noted == [1.0, 2.0, 3.0]
    assert [type(each) for each in failures] == [ValueError]


@pytest.mark.parametrize("pause_ms", [1, 50])
def test_a_pause_between_slices_counts_for_nobody(pause_ms: int) -> None:
    stand = Stand()

    def work() -> Paced[None]:
        stand.spent_s += 1.0
        yield pause_ms
        stand.spent_s += 2.0

    stand.slices.run(work())
    stand.spent_s += pause_ms / 1_000
    stand.clock.advance(pause_ms / 1_000)
    stand.finish()
    assert stand.noted == pytest.approx([1.0, 2.0])
