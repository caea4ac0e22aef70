"""How steep a measure grows, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

SURE: Final = 2.0
"""Standard errors by which a slope is above its limit where it is too steep, and below to hold."""


@dataclass(frozen=True, slots=True)
class Slope:
    """By the hour, with its standard error."""

    per_hour: float
    error: float

    def is_above(self, limit: float) -> bool:
        """Whether it is above the limit by more than its error explains."""
        return self.per_hour - SURE * self.error > limit

    def is_below(self, limit: float) -> bool:
        """Whether it surely is not."""
        return self.per_hour + SURE * self.error <= limit


def compute_slope(hours: Sequence[float], values: Sequence[float]) -> Slope:
    """The line of least squares through three points or more.

    What is left of a value beside the line often goes on in the next one: a buffer that fills, a
    file that is not compacted yet. So the error is that of as many points as would say as much if
    each stood for itself (by the correlation of neighbours).
    """
    count = len(hours)
    assert count == len(values) >= 3
    middle, mean = sum(hours) / count, sum(values) / count
    spread = sum((hour - middle) ** 2 for hour in hours)
    slope = sum((h - middle) * (v - mean) for h, v in zip(hours, values, strict=True)) / spread
    rest = [v - mean - slope * (h - middle) for h, v in zip(hours, values, strict=True)]
    error = math.sqrt(sum(each * each for each in rest) / (count - 2) / spread)
    return Slope(slope, error * math.sqrt(_compute_inflation(rest)))


def _compute_inflation(rest: Sequence[float]) -> float:
    """By how much the variance grows: (1 + r) / (1 - r), never below 1."""
    total = sum(each * each for each in rest)
    if total == 0:
        return 1.0
    neighbours = sum(one * two for one, two in pairwise(rest)) / total
    neighbours = min(max(neighbours, 0.0), 0.95)
    return (1 + neighbours) / (1 - neighbours)


def compute_growth(values: Sequence[float]) -> float:
    """How far all of the last third is above all of the first; 0 where it is not.

    For few points at which the state is the same: what comes back does not grow, and what grows
    with each does. Three points or more.
    """
    part = len(values) // 3
    assert part
    return max(0.0, min(values[-part:]) - max(values[:part]))
