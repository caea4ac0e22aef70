"""The removal of members, as it is shown."""

from __future__ import annotations

from collections.abc import Sequence

from console.views.actions.preview import Outcome, Preview
from console.views.tables import Table, make_table
from muster.v1 import admin_pb2
from wording.commands import render_command
from wording.groups import render_partitions


def compute_removal_preview(
    request: admin_pb2.RemoveMembersRequest,
    shown: admin_pb2.RemoveMembersResponse,
    fields: Sequence[tuple[str, str]],
) -> Preview:
    """Whom it concerns, and what becomes free."""
    count = sum(len(topic.partitions) for each in shown.members for topic in each.assignment)
    return Preview(
        f"Remove members of {request.group_id}",
        [
            f"They are members now; afterwards they are not, {count} partitions become free, and "
            f"{_describe_rest(shown.remaining)}.",
            "Who is alive is told UNKNOWN_MEMBER_ID, and may join again: stop it first.",
        ],
        "Remove",
        shown.preview,
        _render(request),
        [_make_table(shown, "To be removed")],
        fields=fields,
        is_dangerous=True,
    )


def compute_removal_outcome(
    request: admin_pb2.RemoveMembersRequest, done: admin_pb2.RemoveMembersResponse
) -> Outcome:
    """Who was removed."""
    return Outcome(
        f"Removed from {request.group_id}",
        [f"What they owned is free: {_describe_rest(done.remaining)}."],
        _render(request),
        [_make_table(done, "Removed, as they were")],
    )


def _describe_rest(remaining: int) -> str:
    return {0: "nobody is left", 1: "1 member is left"}.get(
        remaining, f"{remaining} members are left"
    )


def _make_table(shown: admin_pb2.RemoveMembersResponse, caption: str) -> Table:
    return make_table(
        "members",
        caption,
        ("Member", "Instance id", "Client id", "Host", "#Partitions", "Partitions"),
        (
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                sum(len(topic.partitions) for topic in member.assignment),
                render_partitions(member.assignment),
            )
            for member in shown.members
        ),
        len(shown.members),
    )


def _render(request: admin_pb2.RemoveMembersRequest) -> str:
    words = ["group", "remove-member", request.group_id]
    for member in request.members:
        named = (
            ("--member", member.member_id)
            if member.member_id
            else ("--instance", member.instance_id)
        )
        words += named
    return render_command(*words, *(("--reason", request.reason) if request.reason else ()))
