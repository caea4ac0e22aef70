"""Which rows of two runs differ by more than their noise; pure.

A row is compared by Muster / Kafka, because the speed of a machine changes from day to day, CPU per
operation with it, and both sides were measured in turns. If Kafka has no figure above zero,
Muster's own is compared, on the same machine.

A row has changed if the ranges (minimum to maximum) of both runs do not overlap, and one median is
more than `SMALL` larger than the other. If a side of either run has no range (one value, or equal
values), its noise is unknown, and it must be more than `UNKNOWN_NOISE` larger.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.figures import Row, Section

SMALL = 0.03
"""The least difference of medians that counts, as a fraction of the smaller one."""

UNKNOWN_NOISE = 0.5
"""The same for values without a range: single runs of an assignor differ by as much."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum of the values of one side."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    @property
    def has_range(self) -> bool:
        return self.least < self.most

    def divided_by(self, other: Spread) -> Spread:
        """The quotient, with the widest range that the values allow; both must be above zero."""
        return Spread(self.median / other.median, self.least / other.most, self.most / other.least)


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row as the history keeps it."""

    what: str
    unit: str
    kafka: Spread
    muster: Spread
    more_is_better: bool = False

    @classmethod
    def of(cls, row: Row) -> KeptRow:
        kafka, muster = Spread.of(row.kafka), Spread.of(row.muster)
        return cls(row.what, row.unit, kafka, muster, row.more_is_better)

    @property
    def ratio(self) -> Spread | None:
        """Muster / Kafka; None unless every value of both is above zero."""
        if min(self.kafka.least, self.muster.least) <= 0:
            return None
        return self.muster.divided_by(self.kafka)


@dataclass(frozen=True, slots=True)
class Change:
    """A row that differs: `unit` is `×` if Muster / Kafka was compared, else the row's."""

    what: str
    unit: str
    before: Spread
    after: Spread
    is_better: bool
    has_ranges: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """All changes, how many rows could be compared, and the rows that only one run has."""

    changes: tuple[Change, ...]
    compared: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


def keep_rows(sections: Iterable[Section]) -> tuple[KeptRow, ...]:
    """The rows of a run without their single values."""
    return tuple(KeptRow.of(row) for section in sections for row in section.rows)


def compare(
    before: Iterable[KeptRow], after: Iterable[KeptRow], *, is_same_machine: bool
) -> Comparison:
    """Compare the rows of two runs by name, in the order of the later run."""
    old, new = _by_name(before), _by_name(after)
    both = [
        what
        for what in new
        if what in old and (is_same_machine or (old[what].ratio and new[what].ratio))
    ]
    return Comparison(
        tuple(
            change
            for what in both
            for change in compare_row(old[what], new[what], is_same_machine=is_same_machine)
        ),
        len(both),
        tuple(what for what in old if what not in new),
        tuple(what for what in new if what not in old),
    )


def compare_row(before: KeptRow, after: KeptRow, *, is_same_machine: bool) -> list[Change]:
    """The changes of one row: of its ratio, and of Muster's own figure where that counts."""
    changes = []
    old, new = before.ratio, after.ratio
    if old is not None and new is not None:
        sides = (before.kafka, before.muster, after.kafka, after.muster)
        has_ranges = all(side.has_range for side in sides)
        if differs(old, new, has_ranges=has_ranges):
            changes.append(_make_change(after, "×", old, new, has_ranges))
    if is_same_machine and (old is None or new is None):
        own, later = before.muster, after.muster
        has_ranges = own.has_range and later.has_range
        if differs(own, later, has_ranges=has_ranges):
            changes.append(_make_change(after, after.unit, own, later, has_ranges))
    return changes


def differs(before: Spread, after: Spread, *, has_ranges: bool) -> bool:
    """Whether the ranges do not overlap and the medians differ by more than the tolerance."""
    if before.least <= after.most and after.least <= before.most:
        return False
    tolerance = SMALL if has_ranges else UNKNOWN_NOISE
    smaller = min(abs(before.median), abs(after.median))
    return abs(after.median - before.median) > tolerance * smaller


def _make_change(
    row: KeptRow, unit: str, before: Spread, after: Spread, has_ranges: bool
) -> Change:
    is_better = (after.median > before.median) == row.more_is_better
    return Change(row.what, unit, before, after, is_better, has_ranges)


def _by_name(rows: Iterable[KeptRow]) -> Mapping[str, KeptRow]:
    return {row.what: row for row in rows}
