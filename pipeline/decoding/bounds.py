"""Bounds on offsets and times, and the selection of records within them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from storage.columnar.batch_columns import BatchColumns
from storage.columnar.record_columns import RecordColumns

_DATA = "data"
_Columns = TypeVar("_Columns", BatchColumns, RecordColumns)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ranges of offsets and times (wall ms), start inclusive, end exclusive; ``None`` is open."""

    start_offset: int = 0
    end_offset: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None

    def intersect(self, other: Bounds) -> Bounds:
        """The bounds of records that are within both."""
        return Bounds(
            max(self.start_offset, other.start_offset),
            _compute_lower(self.end_offset, other.end_offset),
            _compute_higher(self.start_ms, other.start_ms),
            _compute_lower(self.end_ms, other.end_ms),
        )

    def is_empty(self) -> bool:
        """Whether no record can be within the bounds."""
        return (self.end_offset is not None and self.end_offset <= self.start_offset) or (
            self.start_ms is not None and self.end_ms is not None and self.end_ms <= self.start_ms
        )

    def holds_offset(self, offset: int) -> bool:
        """Whether the offset is within the bounds."""
        return self.start_offset <= offset and (self.end_offset is None or offset < self.end_offset)


ALL = Bounds()


def select_batches(batches: BatchColumns, bounds: Bounds) -> BatchColumns:
    """Drop batches that have no record within the bounds."""
    wanted = batches.last_offsets >= bounds.start_offset
    if bounds.end_offset is not None:
        wanted &= batches.base_offsets < bounds.end_offset
    if bounds.start_ms is not None:
        wanted &= batches.max_timestamps >= bounds.start_ms
    return batches if wanted.all() else select_rows(batches, wanted)


def select_records(records: RecordColumns, bounds: Bounds) -> RecordColumns:
    """Keep only records within the bounds."""
    wanted = records.offsets >= bounds.start_offset
    if bounds.end_offset is not None:
        wanted &= records.offsets < bounds.end_offset
    if bounds.start_ms is not None:
        wanted &= records.timestamps >= bounds.start_ms
    if bounds.end_ms is not None:
        wanted &= records.timestamps < bounds.end_ms
    return records if wanted.all() else select_rows(records, wanted)


def select_rows(columns: _Columns, wanted: Any) -> _Columns:
    """Keep only the batches or records that the mask selects."""
    arrays: dict[str, Any] = {
        field.name: getattr(columns, field.name)[wanted]
        for field in fields(columns)
        if field.name != _DATA
    }
    return replace(columns, **arrays)


def _compute_lower(one: int | None, other: int | None) -> int | None:
    found = [value for value in (one, other) if value is not None]
    return min(found) if found else None


def _compute_higher(one: int | None, other: int | None) -> int | None:
    found = [value for value in (one, other) if value is not None]
    return max(found) if found else None
