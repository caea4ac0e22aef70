"""Changes of offsets that can be undone, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from muster.v1 import reset_pb2
from wording.times import render_time

NO_OFFSET: Final = -1
_WORDS: Final = {
    reset_pb2.OFFSET_CHANGE_KIND_RESET: "the reset",
    reset_pb2.OFFSET_CHANGE_KIND_UNDO: "the undo",
    reset_pb2.OFFSET_CHANGE_KIND_GROUP_DELETED: "the deletion of the group",
    reset_pb2.OFFSET_CHANGE_KIND_OFFSETS_DELETED: "the deletion of offsets",
    reset_pb2.OFFSET_CHANGE_KIND_EXPIRED: "the expiry of offsets",
}

_EVENTS: Final = {
    reset_pb2.OFFSET_CHANGE_KIND_RESET: "offsets_reset",
    reset_pb2.OFFSET_CHANGE_KIND_UNDO: "offsets_undone",
    reset_pb2.OFFSET_CHANGE_KIND_GROUP_DELETED: "group_deleted",
    reset_pb2.OFFSET_CHANGE_KIND_OFFSETS_DELETED: "offsets_deleted",
    reset_pb2.OFFSET_CHANGE_KIND_EXPIRED: "offsets_expired",
}
"""By the kind of the change; a later version may have others."""


def describe_undo(shown: reset_pb2.ResetOffsetsResponse) -> str:
    """What is undone, in words."""
    change = shown.undone
    what = _WORDS.get(change.kind, "a change")
    who = f" by {change.principal}" if change.principal else ""
    effect = f"{what} of {render_time(change.changed_ms)}{who} will be undone"
    effect = effect[0].upper() + effect[1:]
    if any(map(was_committed_since, shown.partitions)):
        effect += "; what was committed since is overwritten"
    if shown.live:
        return f"{effect}. The members give up these partitions first; then they get them."
    return f"{effect}."


def was_committed_since(row: reset_pb2.ResetPartition) -> bool:
    """Whether the offset is another than the change left."""
    had = row.HasField("offset_before"), row.offset_before
    left = row.HasField("offset_changed"), row.offset_changed
    return had != left


def render_kind(change: reset_pb2.OffsetChange) -> str:
    """Its kind, such as ``group_deleted``."""
    if change.kind not in reset_pb2.OffsetChangeKind.values():
        return "unspecified"
    name = reset_pb2.OffsetChangeKind.Name(change.kind)
    return name.removeprefix("OFFSET_CHANGE_KIND_").lower()


def render_event(change: reset_pb2.OffsetChange) -> str:
    """What happened, as timelines name it, such as ``offsets_reset``."""
    return _EVENTS.get(change.kind, "offsets_changed")


def render_change(change: reset_pb2.OffsetChange) -> str:
    """How many offsets were changed, by whom, and the number that an undo takes."""
    parts = ["1 offset" if change.offsets == 1 else f"{change.offsets} offsets"]
    if change.principal:
        parts.append(f"by {change.principal}")
    parts.append(f"change {change.log_offset}")
    if change.HasField("undoes"):
        parts.append(f"undoes {change.undoes}")
    return ", ".join(parts)


def describe_start(
    group_id: str, changes: Sequence[reset_pb2.OffsetChange], since_ms: int | None
) -> Iterator[str]:
    """Since when changes are known, where not all are."""
    if since_ms is not None:
        yield f"changes are known since {render_time(since_ms)}: the log's history begins there"
    elif not changes:
        yield f"no change of the offsets of {group_id} is known"
