"""The intended times of requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.load.wire.request_schedule import RequestSchedule, compute_intended_ns

SECOND = 1_000_000_000


@given(st.floats(0.1, 100_000), st.integers(0, 10 * SECOND), st.integers(0, 10_000))
def test_intended_times_never_go_back(rate: float, ramp_ns: int, number: int) -> None:
    assert compute_intended_ns(number, rate, ramp_ns) <= compute_intended_ns(
        number + 1, rate, ramp_ns
    )


@pytest.mark.parametrize(
    ("number", "expected_s"), [(0, 0.0), (125, 1.0), (500, 2.0), (501, 2.002), (1000, 3.0)]
)
def test_the_rate_rises_in_the_ramp_and_then_stays(number: int, expected_s: float) -> None:
    # In a ramp of 2 s to 500 a second there are 500 requests, a quarter of them in its first half.
    assert compute_intended_ns(number, 500, 2 * SECOND) == pytest.approx(expected_s * SECOND)


def test_a_held_rate_gives_each_request_its_time_and_no_more_than_are_due() -> None:
    schedule = RequestSchedule(10, 0)
    schedule.start(5 * SECOND, 6 * SECOND)
    assert schedule.take(5 * SECOND - 1) is None
    assert schedule.take(5 * SECOND) == 5 * SECOND
    assert schedule.take(5 * SECOND) is None
    assert not schedule.is_due(5 * SECOND)
    # After a stall of half a second the times are those of the schedule.
    late = 5 * SECOND + SECOND // 2
    taken = [schedule.take(late) for _ in range(6)]
    assert taken == [5 * SECOND + SECOND * tenth // 10 for tenth in (1, 2, 3, 4, 5)] + [None]


def test_what_was_due_before_the_end_is_given_out_after_it() -> None:
    schedule = RequestSchedule(10, 0)
    schedule.start(0, SECOND)
    assert sum(schedule.take(9 * SECOND) is not None for _ in range(100)) == 10


def test_nothing_is_intended_after_a_stop() -> None:
    schedule = RequestSchedule(10, 0)
    schedule.start(0, SECOND)
    schedule.stop(SECOND // 2)
    assert sum(schedule.take(9 * SECOND) is not None for _ in range(100)) == 5


def test_without_a_rate_a_request_is_intended_when_it_is_taken() -> None:
    schedule = RequestSchedule(0, 0)
    assert schedule.take(5) is None
    schedule.start(10, 20)
    assert [schedule.take(at) for at in (9, 10, 10, 19, 20)] == [None, 10, 10, 19, None]
