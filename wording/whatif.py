"""What a change would do to a group, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from muster.v1 import what_if_pb2

NAMED_MAX: Final = 20
"""The most members that a line names: the table of the members has them all."""


def compute_summary(
    group_id: str, found: what_if_pb2.WhatIfResponse, protocol: str = ""
) -> list[str]:
    """How much moves, the balance, who is idle, and how long it takes."""
    idle = find_idle(found)
    moved = sum(bool(move.from_member_id and move.to_member_id) for move in found.moves)
    if protocol == "classic":
        until = f"{_count(found.rounds, 'rebalance')} by a leader with {found.assignor}"
    else:
        until = (
            f"{_count(found.rounds, 'heartbeat')} of each member, "
            f"{_count(found.epochs, 'target assignment')}"
        )
    lines = [
        f"{group_id}: assignor {found.assignor}, {_count(moved, 'partition')} would move, "
        f"{len(found.moves) - moved} would get or lose an owner",
        f"partitions per member: {_render_balance(find_before(found))} before, "
        f"{_render_balance(find_after(found))} after",
        f"idle: {_name(idle) if idle else 'nobody'}",
        f"converges after {until}",
    ]
    if found.waits_for:
        lines.append(f"waits for {_name(found.waits_for)}, away and still an owner")
    if found.truncated:
        lines.append("there are more steps than were computed: this is as far as they go")
    return lines


def find_idle(found: what_if_pb2.WhatIfResponse) -> list[str]:
    """The members that would own nothing."""
    return [
        each.member_id
        for each in found.members
        if each.HasField("partitions_after") and not each.partitions_after
    ]


def find_before(found: what_if_pb2.WhatIfResponse) -> list[int]:
    has = (each for each in found.members if each.HasField("partitions_before"))
    return [each.partitions_before for each in has]


def find_after(found: what_if_pb2.WhatIfResponse) -> list[int]:
    has = (each for each in found.members if each.HasField("partitions_after"))
    return [each.partitions_after for each in has]


def compute_balance(counts: Sequence[int]) -> dict[str, float] | None:
    if not counts:
        return None
    mean = round(sum(counts) / len(counts), 2)
    return {"members": len(counts), "min": min(counts), "max": max(counts), "mean": mean}


def _render_balance(counts: Sequence[int]) -> str:
    if not counts:
        return "no members"
    return f"{min(counts)} to {max(counts)} ({_count(len(counts), 'member')})"


def _name(members: Sequence[str]) -> str:
    named = ", ".join(members[:NAMED_MAX])
    more = len(members) - NAMED_MAX
    return f"{named} and {more} more" if more > 0 else named


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
