"""Kafka's own log as the history of its groups sees it, without Spark."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.decoding.blocks import decode_blocks
from pipeline.schema import RECORDS, UNKNOWN_VERSION
from pipeline.tables.histories.group_histories import make_table_observers
from pipeline.tables.histories.group_state import read_topic_id
from pipeline.tables.histories.rows import Row, Rows
from pipeline.tables.histories.written_records import LoggedRecord, MakeObservers, follow_groups

GOLDEN = Path(__file__).parents[1] / "golden"
SEGMENTS = GOLDEN / "segments"


@cache
def golden_table(folder: Path = SEGMENTS) -> pa.Table:
    """All records of a folder of segments."""
    batches = [
        decode_blocks(file.read_bytes(), int(file.parent.name.rpartition("-")[2]))
        for file in sorted(folder.glob("*/*.log"))
    ]
    return pa.Table.from_batches(batches, RECORDS)


def read_group_events(
    table: pa.Table, problems: Container[str | None] = (None,)
) -> list[LoggedRecord]:
    """The records that are no offsets, in the order in which Spark gives them."""
    return sort_events(
        make_event(row)
        for row in table.to_pylist()
        if row["type_id"] is not None and row["type_id"] > 1 and row["problem"] in problems
    )


def read_all_events(table: pa.Table) -> list[LoggedRecord]:
    """As the audit sees them: with records of newer versions, and with offsets that are there for
    the first time, or deleted; none of transactions."""
    there: dict[tuple[Any, ...], LoggedRecord] = {}
    events = read_group_events(table, (None, UNKNOWN_VERSION))
    for row in table.to_pylist():
        if row["type_id"] not in (0, 1) or row["is_transactional"]:
            continue
        place = row["partition"], row["group_id"], row["topic"], row["topic_partition"]
        event = make_event(row)._replace(
            type_id=1, topic=row["topic"], topic_partition=row["topic_partition"], key=None
        )
        if event.value is not None:
            if place not in there:
                events.append(event._replace(value=b""))
            there[place] = event
        elif (last := there.pop(place, None)) is not None:
            events.append(event._replace(commit_ts_ms=last.ts_ms))
    return sort_events(events)


def read_topic_names(table: pa.Table) -> dict[bytes, str]:
    """What commits say of topic ids."""
    rows = [row for row in table.to_pylist() if row["topic_id"] is not None]
    return {read_topic_id(row["topic_id"]): row["topic"] for row in rows}


def sort_events(events: Iterable[LoggedRecord]) -> list[LoggedRecord]:
    return sorted(events, key=lambda event: (event.log_partition, event.group_id, event.offset))


def make_event(row: dict[str, Any]) -> LoggedRecord:
    return LoggedRecord(
        row["partition"],
        row["group_id"],
        row["offset"],
        row["base_offset"],
        int(row["timestamp"].timestamp() * 1000),
        row["type_id"],
        row["key"],
        row["value"],
    )


def compute_rows(records: Iterable[LoggedRecord]) -> dict[str, list[Row]]:
    """All tables that the history gives."""
    rows = Rows()
    follow(records, lambda partition, group_id: make_table_observers(rows))
    return rows.take()


def follow(records: Iterable[LoggedRecord], make_observers: MakeObservers) -> None:
    for _ in follow_groups(records, make_observers):
        pass
