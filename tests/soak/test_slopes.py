"""What counts as growth."""

from __future__ import annotations

import random

import pytest

from tests.soak.slopes import compute_growth, compute_slope

HOURS = [minute / 60 for minute in range(25)]


def noisy(per_hour: float, noise: float, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [100 + per_hour * hour + chance.gauss(0, noise) for hour in HOURS]


def test_the_slope_of_a_line_is_exact() -> None:
    slope = compute_slope(HOURS, [3 + 40 * hour for hour in HOURS])
    assert slope.per_hour == pytest.approx(40)
    assert slope.error == pytest.approx(0, abs=1e-9)
    assert slope.is_above(20)
    assert slope.is_below(41)


def test_most_slopes_are_within_two_errors() -> None:
    slopes = [compute_slope(HOURS, noisy(7, 5, seed)) for seed in range(200)]
    within = sum(abs(slope.per_hour - 7) <= 2 * slope.error for slope in slopes)
    assert within > 180


def test_noise_is_no_growth_and_growth_is_found_in_it() -> None:
    still = compute_slope(HOURS, noisy(0, 5))
    assert not still.is_above(20)
    assert compute_slope(HOURS, noisy(200, 5)).is_above(20)


def test_a_saw_tooth_is_not_taken_for_a_slope() -> None:
    """Its neighbours go up together: as independent points they would be sure of it."""
    teeth = [4.0 * (minute % 10) for minute in range(25)]
    assert not compute_slope(HOURS, teeth).is_above(20)


def test_what_comes_back_does_not_grow() -> None:
    assert compute_growth([5, 90, 7, 6, 80, 6]) == 0
    assert compute_growth([10, 11, 12, 13, 14, 15]) == 3
    assert compute_growth([3, 3, 3]) == 0
