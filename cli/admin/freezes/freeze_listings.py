"""What `muster group freeze` and `resume` print: the group before and after, and what moves."""

from __future__ import annotations

from typing import Any, Final

from cli.admin.whatif.whatif_listing import (
    COLUMNS,
    compute_listing,
    compute_moves,
    describe_moves,
)
from cli.output import Listing
from muster.v1 import freeze_pb2
from wording.times import render_second

NAMES_MAX: Final = 8
"""The most members named in one line."""


def compute_freeze(group_id: str, shown: freeze_pb2.FreezeGroupResponse, dry_run: bool) -> Listing:
    """The frozen group, and the moves that still come to their end."""
    preface = [
        f"{group_id}: not frozen before, {_say('frozen', dry_run)} after, at group epoch "
        f"{shown.group_epoch}"
    ]
    if shown.without_target:
        named = ", ".join(shown.without_target[:NAMES_MAX])
        more = shown.without_target_count - NAMES_MAX
        preface.append(
            f"get nothing until it is resumed: {named}{f' and {more} more' if more > 0 else ''}"
        )
    if shown.moves_count > len(shown.moves):
        preface.append(f"moves that come to their end: {shown.moves_count}, of which some are here")
    content: dict[str, Any] = {
        "group_id": group_id,
        "frozen": {"before": False, "after": True},
        "group_epoch": shown.group_epoch,
        "moves": describe_moves(shown.moves),
        "without_target": list(shown.without_target),
        "moves_count": shown.moves_count,
        "without_target_count": shown.without_target_count,
    }
    rows = compute_moves(group_id, shown.moves)
    return Listing("group.freeze", COLUMNS, rows, content, "moves", 0, preface)


def compute_resume(group_id: str, shown: freeze_pb2.ResumeGroupResponse, dry_run: bool) -> Listing:
    """The resumed group; of a dry run, what would move."""
    since = render_second(shown.frozen_since_ms)
    preface = [
        f"{group_id}: frozen since {since} by {shown.frozen_by} before, "
        f"{_say('not frozen', dry_run)} after, with group epoch {shown.group_epoch}"
    ]
    content: dict[str, Any] = {
        "group_id": group_id,
        "frozen": {"before": True, "after": False},
        "frozen_since": since,
        "frozen_by": shown.frozen_by,
        "group_epoch": shown.group_epoch,
        "moves": describe_moves(shown.what_if.moves),
    }
    if dry_run:
        what_if = compute_listing(group_id, shown.what_if)
        content["what_if"] = dict(what_if.content)
        preface += what_if.preface
    rows = compute_moves(group_id, shown.what_if.moves)
    return Listing("group.resume", COLUMNS, rows, content, "moves", 0, preface)


def _say(state: str, dry_run: bool) -> str:
    return f"would be {state}" if dry_run else state
