"""Collects rows for the tables."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from pipeline.decoding.arrays import FIRST_MS, LAST_MS
from pipeline.tables.histories.written_records import LoggedRecord

Row = dict[str, Any]


class Rows:
    """Collects rows by table until ``take``."""

    def __init__(self) -> None:
        self._rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.count = 0

    def add(self, table: str, at: LoggedRecord, **columns: Any) -> None:
        """Add a row for the record."""
        row = {
            "group_id": at.group_id,
            "log_partition": at.log_partition,
            "offset": at.offset,
            "ts": to_timestamp(at.ts_ms),
        }
        row.update(columns)
        self._rows[table].append(row)
        self.count += 1

    def take(self) -> dict[str, list[Row]]:
        """Remove and return all rows, by table."""
        taken = dict(self._rows)
        self._rows.clear()
        self.count = 0
        return taken


def to_timestamp(ms: int | None) -> int | None:
    """Microseconds, as in Spark's timestamps; ``None`` outside their range."""
    return None if ms is None or not FIRST_MS <= ms <= LAST_MS else ms * 1000
