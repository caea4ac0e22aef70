"""Work takes a share of the time, and what it has saved at once."""

from __future__ import annotations

import pytest

from console.live.allowance import Allowance


def test_what_is_saved_is_spent_without_a_rest() -> None:
    allowance = Allowance(0.1, 0.2, now_s=100.0)
    assert allowance.spend(0.07, 100.0) == 0.0
    assert allowance.spend(0.07, 100.1) == 0.0
    assert allowance.spend(0.09, 100.1) == pytest.approx(0.2)


def test_work_that_goes_on_takes_its_share() -> None:
    allowance, now_s, worked_s = Allowance(0.1, 0.2, now_s=0.0), 0.0, 0.0
    while now_s < 1_000.0:
        now_s += 0.05 + allowance.spend(0.05, now_s)
        worked_s += 0.05
    assert worked_s / now_s == pytest.approx(0.1, rel=0.01)


def test_no_more_is_saved_than_may_be() -> None:
    allowance = Allowance(0.1, 0.2, now_s=0.0)
    assert allowance.spend(0.3, 1_000_000.0) == pytest.approx(1.0)
