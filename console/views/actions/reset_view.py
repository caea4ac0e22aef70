"""Resets of offsets and their undo, as they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from console.views.actions.preview import Outcome, Preview
from console.views.tables import Table, make_table
from muster.v1 import reset_pb2
from wording.commands import render_command
from wording.undos import NO_OFFSET, describe_undo, was_committed_since

_LIVE = "The members give up these partitions first; then they get them, and go on from there."


def compute_reset_preview(
    group_id: str,
    shown: reset_pb2.ResetOffsetsResponse,
    words: Sequence[str],
    fields: Sequence[tuple[str, str]],
) -> Preview:
    """The offsets before and after. ``words`` are the options of the command."""
    return Preview(
        f"Set committed offsets of {group_id}",
        [
            f"{len(shown.partitions)} offsets are set, all or none.",
            *([_LIVE] if shown.live else ()),
        ],
        "Set these offsets",
        shown.preview,
        render_command("group", "reset", group_id, *words),
        [_make_table(shown, "Offsets now, and afterwards")],
        _describe_clamped(shown),
        fields,
        is_dangerous=True,
    )


def compute_undo_preview(
    group_id: str,
    shown: reset_pb2.ResetOffsetsResponse,
    words: Sequence[str],
    fields: Sequence[tuple[str, str]],
) -> Preview:
    """The offsets as they were before a change, and now."""
    return Preview(
        f"Undo a change of the offsets of {group_id}",
        [describe_undo(shown)],
        "Undo",
        shown.preview,
        render_command("group", "undo", group_id, *words),
        [_make_table(shown, "Offsets now, and afterwards", is_undo=True)],
        _describe_clamped(shown),
        fields,
        is_dangerous=True,
    )


def compute_reset_outcome(
    group_id: str,
    done: reset_pb2.ResetOffsetsResponse,
    progress: reset_pb2.GetResetResponse | None,
    words: Sequence[str],
) -> Outcome:
    """The offsets that were set; of a group with members, how far that is."""
    is_undo = done.HasField("undone")
    title = "A change is undone" if is_undo else "Offsets are set"
    if done.live and (progress is None or not progress.done):
        title = "Offsets are being set"
    return Outcome(
        f"{title}: {group_id}",
        _describe_progress(done, progress),
        render_command("group", "undo" if is_undo else "reset", group_id, *words),
        [_make_table(done, "Offsets before, and now", is_undo=is_undo)],
    )


def _describe_progress(
    done: reset_pb2.ResetOffsetsResponse, progress: reset_pb2.GetResetResponse | None
) -> list[str]:
    if not done.live:
        return [f"{len(done.partitions)} offsets, in one write."]
    lines = [f"Under group epoch {done.group_epoch}. {_LIVE}"]
    if progress is not None and progress.done:
        lines.append("They have: the offsets are set.")
    elif progress is not None and progress.waits_for:
        named = ", ".join(
            f"{owner.member_id} (client {owner.client_id}, host {owner.client_host})"
            for owner in progress.waits_for
        )
        lines.append(f"Waits for {named}.")
    return lines


def _describe_clamped(shown: reset_pb2.ResetOffsetsResponse) -> Sequence[str]:
    count = sum(row.clamped for row in shown.partitions)
    if not count:
        return ()
    return (f"{count} positions were outside of the log; the nearest in it is taken.",)


def _make_table(
    shown: reset_pb2.ResetOffsetsResponse, caption: str, *, is_undo: bool = False
) -> Table:
    columns = ["Topic", "#Partition", "#Before", "#After", "#Log start", "#Log end", "Note"]
    rows = ([*_make_row(row), _make_note(row, is_undo=is_undo)] for row in shown.partitions)
    return make_table("offsets", caption, columns, rows, len(shown.partitions))


def _make_row(row: reset_pb2.ResetPartition) -> list[object]:
    return [
        row.topic_name,
        row.partition,
        row.offset_before if row.HasField("offset_before") else None,
        None if row.offset_after == NO_OFFSET else row.offset_after,
        row.start_offset if row.HasField("start_offset") else None,
        row.end_offset if row.HasField("end_offset") else None,
    ]


def _make_note(row: reset_pb2.ResetPartition, *, is_undo: bool) -> str:
    notes = ["nearest in the log"] if row.clamped else []
    if is_undo and was_committed_since(row):
        notes.append("committed since")
    return ", ".join(notes)
