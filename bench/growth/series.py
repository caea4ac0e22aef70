"""The series, what is expected of them, and the slopes fitted to them; pure.

A slope is the exponent with which cost grows with size: 0 is a constant cost, 1 a cost in
proportion. It is that of the least-squares line through the logarithms of all points. A constant
part of the cost hides growth at small sizes, so the last decade has a slope of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log10

SIZES = (10, 100, 1_000, 10_000, 100_000)
TOLERANCE = 0.15
"""How much the slope of all points may exceed the expected one: CPU caches cost as much."""

LAST_TOLERANCE = 0.25
"""The same for the last decade: two points of a busy machine differ more than a line."""

DECADE = 10.5
"""The last decade has the sizes up to this much below the largest."""

CPU_MS, MIB = "ms", "MiB"


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: a `name` within its axis, and the slope that it should not exceed.

    `limit` is the largest size that the product accepts, and `limit_reason` what sets it.
    """

    axis: str
    name: str
    title: str
    expected: float
    text: str
    unit: str = CPU_MS
    limit: int | None = None
    limit_reason: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """What grows: `label` is the label of the plot, `text` describes the server."""

    name: str
    label: str
    text: str
    sizes: tuple[int, ...] = SIZES
    measured_with: str = ""
    """Another axis, whose process measures this one too."""

    @property
    def process(self) -> str:
        return self.measured_with or self.name

    @property
    def file_name(self) -> str:
        return self.name.replace(" ", "-")


@dataclass(slots=True)
class Measured:
    """The points of a series, by size, in its unit; and a profile if it is too steep."""

    series: Series
    points: dict[int, float] = field(default_factory=dict)
    profile: tuple[str, ...] = ()

    @property
    def slope(self) -> float:
        return fit_slope(self.points)

    @property
    def last_slope(self) -> float:
        """The slope of the last decade."""
        largest = max(self.points)
        return fit_slope({n: cost for n, cost in self.points.items() if n * DECADE >= largest})

    @property
    def is_too_steep(self) -> bool:
        expected = self.series.expected
        return self.slope > expected + TOLERANCE or self.last_slope > expected + LAST_TOLERANCE


def fit_slope(points: Mapping[int, float]) -> float:
    """The slope of the least-squares line on logarithmic axes. Needs two sizes."""
    xs = [log10(size) for size in points]
    ys = [log10(cost) for cost in points.values()]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    products = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True))
    return products / sum((x - middle_x) ** 2 for x in xs)


def select_points(series: Series, points: Mapping[int, float]) -> dict[int, float]:
    """The points up to the limit of the product, in the order of size."""
    return {
        size: points[size]
        for size in sorted(points)
        if series.limit is None or size <= series.limit
    }


def find_steep(measured: Sequence[Measured]) -> list[Measured]:
    return [one for one in measured if one.is_too_steep]
