"""Freeze and resume, as they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from console.views.actions.preview import Outcome, Preview, compute_token
from console.views.whatif_view import compute_moves_table, compute_what_if_view
from muster.v1 import freeze_pb2
from wording.commands import render_command
from wording.times import render_second

NAMES_MAX = 8


def compute_freeze_preview(group_id: str, shown: freeze_pb2.FreezeGroupResponse) -> Preview:
    """What a freeze would leave the group with."""
    effects = [
        "Now rebalancing is not frozen; afterwards it is: members that join get nothing, and the "
        "partitions of members that leave have no owner until it is resumed.",
        f"The group epoch stays {shown.group_epoch}.",
    ]
    if shown.moves_count:
        effects.append("These moves have begun and still come to their end.")
    tables = [compute_moves_table(shown.moves, shown.moves_count)] if shown.moves_count else []
    return Preview(
        f"Freeze rebalancing of {group_id}",
        effects,
        "Freeze",
        compute_token([shown]),
        render_command("group", "freeze", group_id),
        tables,
        _describe_without_target(shown),
    )


def _describe_without_target(shown: freeze_pb2.FreezeGroupResponse) -> Sequence[str]:
    if not shown.without_target_count:
        return ()
    named = ", ".join(shown.without_target[:NAMES_MAX])
    more = shown.without_target_count - min(len(shown.without_target), NAMES_MAX)
    who = " and ".join(part for part in (named, f"{more} more" if more else "") if part)
    return (f"Joined too late for the target assignment, and get nothing until a resume: {who}.",)


def compute_freeze_outcome(group_id: str, done: freeze_pb2.FreezeGroupResponse) -> Outcome:
    """The frozen group."""
    return Outcome(
        f"Rebalancing of {group_id} is frozen",
        [
            "It stays so, also through a restart, until it is resumed. "
            f"Group epoch {done.group_epoch}."
        ],
        render_command("group", "freeze", group_id),
        [compute_moves_table(done.moves, done.moves_count)] if done.moves_count else (),
    )


def compute_resume_preview(group_id: str, shown: freeze_pb2.ResumeGroupResponse) -> Preview:
    """What would move."""
    what_if = compute_what_if_view(group_id, shown.what_if)
    return Preview(
        f"Resume rebalancing of {group_id}",
        [
            f"Frozen since {render_second(shown.frozen_since_ms)} by {shown.frozen_by}; afterwards "
            "not frozen, with a new target assignment at once.",
            *what_if.summary,
        ],
        "Resume",
        compute_token([shown]),
        render_command("group", "resume", group_id),
        [what_if.moves, what_if.members],
    )


def compute_blind_resume_preview(group_id: str, why: str) -> Preview:
    """A resume whose moves only a client can compute."""
    return Preview(
        f"Resume rebalancing of {group_id}",
        ["Afterwards it is not frozen, with a new target assignment at once."],
        "Resume",
        "",
        render_command("group", "resume", group_id, "--yes"),
        warnings=[f"What would move is not known: {why}"],
    )


def compute_resume_outcome(group_id: str, done: freeze_pb2.ResumeGroupResponse) -> Outcome:
    """The resumed group."""
    return Outcome(
        f"Rebalancing of {group_id} goes on",
        [f"The new target assignment is for group epoch {done.group_epoch}."],
        render_command("group", "resume", group_id),
    )
