"""What `muster group undo` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cli.output import Listing
from muster.v1 import reset_pb2
from wording.times import render_time
from wording.undos import NO_OFFSET, render_kind, was_committed_since

COLUMNS: Final = (
    "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "CURRENT-OFFSET", "CHANGED-OFFSET",
    "LOG-START-OFFSET", "LOG-END-OFFSET", "COMMITTED-SINCE", "CLAMPED",
)  # fmt: skip
CHANGE_COLUMNS: Final = (
    "GROUP", "CHANGE", "CHANGED", "KIND", "OFFSETS", "PRINCIPAL", "UNDOES",
)  # fmt: skip


def compute_rows(group_id: str, shown: reset_pb2.ResetOffsetsResponse) -> list[list[object]]:
    """A row for each partition; an offset that is none is ``None``."""
    return [_make_row(group_id, each) for each in shown.partitions]


def _make_row(group_id: str, row: reset_pb2.ResetPartition) -> list[object]:
    current = row.offset_before if row.HasField("offset_before") else None
    changed = row.offset_changed if row.HasField("offset_changed") else None
    return [
        group_id,
        row.topic_name,
        row.partition,
        None if row.offset_after == NO_OFFSET else row.offset_after,
        current,
        changed,
        row.start_offset if row.HasField("start_offset") else None,
        row.end_offset if row.HasField("end_offset") else None,
        "yes" if was_committed_since(row) else None,
        "yes" if row.clamped else None,
    ]


def compute_undo(group_id: str, shown: reset_pb2.ResetOffsetsResponse) -> Listing:
    """The offsets that an undo has set, or would set."""
    rows = compute_rows(group_id, shown)
    names = [column.lower().replace("-", "_") for column in COLUMNS[1:]]
    items = [dict(zip(names, row[1:], strict=True)) for row in rows]
    content = {"group_id": group_id, "undone": describe_change(shown.undone), "offsets": items}
    return Listing("group.undo", COLUMNS, rows, content, "offsets")


def compute_changes(group_id: str, changes: Sequence[reset_pb2.OffsetChange]) -> Listing:
    """The changes that can be undone, the last one first."""
    rows = [
        [
            group_id,
            each.log_offset,
            render_time(each.changed_ms),
            render_kind(each),
            each.offsets,
            each.principal or None,
            each.undoes if each.HasField("undoes") else None,
        ]
        for each in changes
    ]
    content = {"group_id": group_id, "changes": [describe_change(each) for each in changes]}
    return Listing("group.undo.list", CHANGE_COLUMNS, rows, content, "changes")


def describe_change(change: reset_pb2.OffsetChange) -> dict[str, Any]:
    """A change as JSON has it."""
    return {
        "change": change.log_offset,
        "last_log_offset": change.last_log_offset,
        "changed_ms": change.changed_ms,
        "kind": render_kind(change),
        "offsets": change.offsets,
        "principal": change.principal or None,
        "undoes": change.undoes if change.HasField("undoes") else None,
    }
