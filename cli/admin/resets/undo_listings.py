"""What `muster group undo` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from cli.output import Listing
from muster.v1 import reset_pb2
from wording.times import render_time

COLUMNS: Final = (
    "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "CURRENT-OFFSET", "CHANGED-OFFSET",
    "LOG-START-OFFSET", "LOG-END-OFFSET", "COMMITTED-SINCE", "CLAMPED",
)  # fmt: skip
CHANGE_COLUMNS: Final = (
    "GROUP", "CHANGE", "CHANGED", "KIND", "OFFSETS", "PRINCIPAL", "UNDOES",
)  # fmt: skip
NO_OFFSET: Final = -1
_WORDS: Final = {
    reset_pb2.OFFSET_CHANGE_KIND_RESET: "the reset",
    reset_pb2.OFFSET_CHANGE_KIND_UNDO: "the undo",
    reset_pb2.OFFSET_CHANGE_KIND_GROUP_DELETED: "the deletion of the group",
    reset_pb2.OFFSET_CHANGE_KIND_OFFSETS_DELETED: "the deletion of offsets",
    reset_pb2.OFFSET_CHANGE_KIND_EXPIRED: "the expiry of offsets",
}


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
        None if current == changed else "yes",
        "yes" if row.clamped else None,
    ]


def compute_undo(group_id: str, shown: reset_pb2.ResetOffsetsResponse) -> Listing:
    """The offsets that an undo has set, or would set."""
    rows = compute_rows(group_id, shown)
    names = [column.lower().replace("-", "_") for column in COLUMNS[1:]]
    items = [dict(zip(names, row[1:], strict=True)) for row in rows]
    content = {"group_id": group_id, "undone": describe_change(shown.undone), "offsets": items}
    return Listing("group.undo", COLUMNS, rows, content, "offsets")


def describe_effect(group_id: str, shown: reset_pb2.ResetOffsetsResponse) -> str:
    """What is undone, in words."""
    change = shown.undone
    what = _WORDS.get(change.kind, "a change")
    who = f" by {change.principal}" if change.principal else ""
    effect = f"{what} of {render_time(change.changed_ms)}{who} will be undone"
    effect = effect[0].upper() + effect[1:]
    if any(row[8] for row in compute_rows(group_id, shown)):
        effect += "; what was committed since is overwritten"
    if shown.live:
        return f"{effect}. The members give up these partitions first; then they get them."
    return f"{effect}."


def compute_changes(group_id: str, changes: Sequence[reset_pb2.OffsetChange]) -> Listing:
    """The changes that can be undone, the last one first."""
    rows = [
        [
            group_id,
            each.log_offset,
            render_time(each.changed_ms),
            _get_kind(each),
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
        "kind": _get_kind(change),
        "offsets": change.offsets,
        "principal": change.principal or None,
        "undoes": change.undoes if change.HasField("undoes") else None,
    }


def _get_kind(change: reset_pb2.OffsetChange) -> str:
    if change.kind not in reset_pb2.OffsetChangeKind.values():
        return "unspecified"
    name = reset_pb2.OffsetChangeKind.Name(change.kind)
    return name.removeprefix("OFFSET_CHANGE_KIND_").lower()


def describe_start(
    group_id: str, changes: Sequence[reset_pb2.OffsetChange], since_ms: int | None
) -> Iterator[str]:
    """Since when changes are known, where not all are."""
    if since_ms is not None:
        yield f"changes are known since {render_time(since_ms)}: the log's history begins there"
    elif not changes:
        yield f"no change of the offsets of {group_id} is known"
