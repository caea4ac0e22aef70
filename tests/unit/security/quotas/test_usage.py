"""What was used of a quota, in the seconds in which it may be used."""

from __future__ import annotations

import pytest

from security.quotas.usage import Usage

BURST_S = 10.0


def test_who_was_silent_may_use_a_burst_at_once() -> None:
    usage = Usage(BURST_S)
    over = []
    for _ in range(55):
        usage.record(1_000.0, 0.2)
        over.append(usage.compute_over_s(1_000.0))
    assert over[:50] == [pytest.approx(0.0, abs=1e-9)] * 50
    assert over[50:] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("per_second", [0.5, 2.0, 50.0])
def test_who_waits_as_long_as_told_keeps_to_the_rate(per_second: float) -> None:
    usage = Usage(BURST_S)
    now, times = 1_000.0, []
    while now < 1_200.0:
        usage.record(now, 1 / per_second)
        times.append(now)
        now += usage.compute_over_s(now) or 0.001
    late = [at for at in times if at >= 1_100.0]
    assert len(late) / 100 == pytest.approx(per_second, rel=0.05)


def test_what_would_be_too_much_is_said_before_it_is_used() -> None:
    usage = Usage(BURST_S)
    usage.record(1_000.0, 9.5)
    assert usage.compute_over_s(1_000.0, 0.5) == 0.0
    assert usage.compute_over_s(1_000.0, 0.75) == pytest.approx(0.25)
    assert usage.compute_over_s(1_000.0) == 0.0, "it was only asked for"


def test_what_was_used_is_forgotten_second_by_second() -> None:
    usage = Usage(BURST_S)
    usage.record(1_000.0, 12.0)
    assert usage.compute_over_s(1_001.0) == pytest.approx(1.0)
    assert usage.compute_over_s(1_002.0) == 0.0
    assert not usage.is_idle(1_011.9)
    assert usage.is_idle(1_012.0)


def test_no_debt_lasts_for_longer_than_another_burst() -> None:
    usage = Usage(BURST_S)
    for _ in range(1_000):
        usage.record(1_000.0, 1.0)
    assert usage.compute_over_s(1_000.0) <= BURST_S + 1.0


def test_one_use_that_is_more_than_a_burst_may_be_made_after_long_enough() -> None:
    """A rate of one in twenty seconds: who asks first would else wait for ever."""
    usage = Usage(BURST_S)
    assert usage.compute_over_s(1_000.0, 20.0) == 0.0
    usage.record(1_000.0, 20.0)
    assert usage.compute_over_s(1_005.0, 20.0) == pytest.approx(15.0)
    assert usage.compute_over_s(1_020.0, 20.0) == 0.0


@pytest.mark.parametrize("former", [5e-324, 1e-9, 0.001])
def test_who_was_given_too_little_by_mistake_is_free_once_it_is_corrected(former: float) -> None:
    usage = Usage(BURST_S)
    usage.change_limit(1_000.0, former)
    usage.record(1_000.0, 1 / former)
    assert usage.compute_over_s(1_000.0) > BURST_S
    usage.change_limit(1_001.0, 10.0)
    assert usage.compute_over_s(1_001.0) == 0.0


def test_who_is_given_less_has_used_more_of_it() -> None:
    usage = Usage(BURST_S)
    usage.change_limit(1_000.0, 10.0)
    usage.record(1_000.0, 9.0)
    usage.change_limit(1_000.0, 5.0)
    assert usage.compute_over_s(1_000.0) == pytest.approx(8.0)
    usage.change_limit(1_000.0, 0.001)
    assert usage.compute_over_s(1_000.0) <= BURST_S
