"""Spark's pushed filters on partition, offset and timestamp, as bounds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from pipeline.decoding.bounds import Bounds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class PushedFilters:
    """The conjunction of filters; ``add`` takes them one by one."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self._partitions = Bounds()
        self._named: set[int] | None = None

    def has_partition(self, partition: int) -> bool:
        """Whether the filters may match records of a partition."""
        named = self._named is None or partition in self._named
        return named and self._partitions.holds_offset(partition)

    def add(self, condition: Filter) -> bool:
        """Add a filter; return whether the source applies it fully."""
        match getattr(condition, "attribute", None):
            case ("partition",):
                return self._add_partition(condition)
            case ("offset",):
                return self._add_offset(condition)
            case ("timestamp",):
                return self._add_timestamp(condition)
            case _:
                return False

    def _add_partition(self, condition: Filter) -> bool:
        if isinstance(condition, In):
            named = {value for value in condition.value if value is not None}
            self._named = named if self._named is None else self._named & named
            return True
        bounds = _compute_whole(condition)
        if bounds is not None:
            self._partitions = self._partitions.intersect(bounds)
        return bounds is not None or isinstance(condition, IsNotNull)

    def _add_offset(self, condition: Filter) -> bool:
        if isinstance(condition, In):
            values = [value for value in condition.value if value is not None]
            bounds = Bounds(min(values), max(values) + 1) if values else Bounds(0, 0)
            self.bounds = self.bounds.intersect(bounds)
            return False
        found = _compute_whole(condition)
        if found is not None:
            self.bounds = self.bounds.intersect(found)
        return found is not None or isinstance(condition, IsNotNull)

    def _add_timestamp(self, condition: Filter) -> bool:
        value = getattr(condition, "value", None)
        if not isinstance(value, datetime):
            return False
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        first, rest = divmod(since, _MS)
        at, after = first + bool(rest), first + 1
        match condition:
            case GreaterThanOrEqual():
                bounds = Bounds(start_ms=at)
            case GreaterThan():
                bounds = Bounds(start_ms=after)
            case LessThan():
                bounds = Bounds(end_ms=at)
            case LessThanOrEqual():
                bounds = Bounds(end_ms=after)
            case EqualTo() | EqualNullSafe():
                bounds = Bounds(start_ms=at, end_ms=after)
            case _:
                return False
        self.bounds = self.bounds.intersect(bounds)
        # ``<=>`` does not imply a timestamp, and rows of unreadable bytes have none.
        return not isinstance(condition, EqualNullSafe)


def _compute_whole(condition: Filter) -> Bounds | None:
    """The bounds of a condition on whole numbers; ``None`` for other conditions."""
    value: Any = getattr(condition, "value", None)
    if type(value) is not int:
        return None
    makers: dict[type[Filter], Callable[[], Bounds]] = {
        EqualTo: lambda: Bounds(value, value + 1),
        EqualNullSafe: lambda: Bounds(value, value + 1),
        GreaterThan: lambda: Bounds(value + 1),
        GreaterThanOrEqual: lambda: Bounds(value),
        LessThan: lambda: Bounds(0, value),
        LessThanOrEqual: lambda: Bounds(0, value + 1),
    }
    make = makers.get(type(condition))
    return None if make is None else make()
