"""The figures and their targets; pure.

A `Row` has the values of both sides, one per run, of which the median counts. A `Section` has the
rows of one scenario, or why it failed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Bounds of Muster's median, or of its ratio to Kafka's or its difference from it; all given
    bounds must hold."""

    min_ratio: float | None = None
    max_ratio: float | None = None
    max_value: float | None = None
    max_more: float | None = None

    def describe(self, unit: str) -> str:
        """Render the bounds, such as `≤ 10 µs`."""
        words = []
        if self.min_ratio is not None:
            words.append(f"≥ {self.min_ratio:g} ×")
        if self.max_ratio is not None:
            words.append(f"≤ {self.max_ratio:g} ×")
        if self.max_value is not None:
            words.append(f"≤ {format_value(self.max_value, unit)}")
        if self.max_more is not None:
            words.append(f"≤ {format_value(self.max_more, unit)} more")
        return " and ".join(words)

    def is_reached(self, muster: float, kafka: float, ratio: float | None) -> bool:
        """Whether the bounds hold. Without a ratio, a bound of the ratio does not."""
        if self.max_value is not None and muster > self.max_value:
            return False
        if self.max_more is not None and muster - kafka > self.max_more:
            return False
        if ratio is None:
            return self.min_ratio is None and self.max_ratio is None
        if self.min_ratio is not None and ratio < self.min_ratio:
            return False
        return self.max_ratio is None or ratio <= self.max_ratio


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity of both sides, in `unit`; `more_is_better` for rates."""

    what: str
    unit: str
    kafka: tuple[float, ...]
    muster: tuple[float, ...]
    target: Target | None = None
    more_is_better: bool = False

    @property
    def kafka_median(self) -> float:
        return statistics.median(self.kafka)

    @property
    def muster_median(self) -> float:
        return statistics.median(self.muster)

    @property
    def ratio(self) -> float | None:
        """Muster's median divided by Kafka's; None unless Kafka's is above zero."""
        return self.muster_median / self.kafka_median if self.kafka_median > 0 else None

    @property
    def is_reached(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        if self.target is None:
            return None
        return self.target.is_reached(self.muster_median, self.kafka_median, self.ratio)

    @property
    def is_behind(self) -> bool:
        """Whether Muster is worse than Kafka."""
        if self.more_is_better:
            return self.muster_median < self.kafka_median
        return self.muster_median > self.kafka_median

    def to_json(self) -> Json:
        return {
            "what": self.what,
            "unit": self.unit,
            "kafka": {"median": self.kafka_median, "values": list(self.kafka)},
            "muster": {"median": self.muster_median, "values": list(self.muster)},
            "ratio": self.ratio,
            "target": None if self.target is None else self.target.describe(self.unit),
            "reached": self.is_reached,
            "behind": self.is_behind,
        }


@dataclass(frozen=True, slots=True)
class Section:
    """A scenario: its method, its rows, and the reports that they are computed from.

    `sides` are what the two sides of its rows are, for people.
    """

    name: str
    title: str
    method: str
    rows: tuple[Row, ...] = ()
    runs: Mapping[str, Sequence[Json]] | None = None
    failure: str | None = None
    seconds: float = 0.0
    sides: tuple[str, str] = ("Kafka", "Muster")

    def to_json(self) -> Json:
        return {
            "name": self.name,
            "title": self.title,
            "method": self.method,
            "failure": self.failure,
            "seconds": round(self.seconds, 1),
            "rows": [row.to_json() for row in self.rows],
            "runs": {side: list(reports) for side, reports in (self.runs or {}).items()},
        }


def format_value(value: float, unit: str) -> str:
    """Three significant digits, thousands with commas; a rate has no space before its unit."""
    size = abs(value)
    if size >= 100 or value == 0:
        text = f"{value:,.0f}"
    elif size >= 10:
        text = f"{value:.1f}"
    else:
        text = f"{value:.2f}"
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}"


def pick(reports: Sequence[Json], *path: str) -> tuple[float, ...]:
    """The figure at a path of names in every report."""
    values = []
    for report in reports:
        value: Any = report
        for name in path:
            value = value[name]
        values.append(float(value))
    return tuple(values)


def flatten(reports: Sequence[Json], name: str) -> tuple[float, ...]:
    """All figures of a list that every report has."""
    return tuple(float(value) for report in reports for value in report[name])
