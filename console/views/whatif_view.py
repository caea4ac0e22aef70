"""What a change would do to a group, as it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.views.tables import Table, make_table
from muster.v1 import what_if_pb2
from wording.whatif import compute_summary, find_idle


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """The answer: in words, who is idle, the moves, and the members before and after."""

    summary: Sequence[str]
    idle: Sequence[str]
    moves: Table
    members: Table


def compute_what_if_view(
    group_id: str, found: what_if_pb2.WhatIfResponse, protocol: str = ""
) -> WhatIfView:
    """What is shown of an answer."""
    return WhatIfView(
        compute_summary(group_id, found, protocol),
        find_idle(found),
        compute_moves_table(found.moves, len(found.moves)),
        make_table(
            "members",
            "Partitions of each member, before and after",
            ("Member", "Client id", "Instance id", "#Before", "#After"),
            (_make_row(each) for each in found.members),
            len(found.members),
        ),
    )


def compute_moves_table(moves: Sequence[what_if_pb2.PartitionMove], count: int) -> Table:
    """The partitions that get another owner."""
    return make_table(
        "moves",
        "Partitions that get another owner",
        ("Topic", "#Partition", "From", "To"),
        (
            (move.topic_name, move.partition, move.from_member_id, move.to_member_id)
            for move in moves
        ),
        count,
    )


def _make_row(member: what_if_pb2.MemberLoad) -> tuple[object, ...]:
    before = member.partitions_before if member.HasField("partitions_before") else "new"
    after = member.partitions_after if member.HasField("partitions_after") else "gone"
    return member.member_id, member.client_id, member.instance_id, before, after
