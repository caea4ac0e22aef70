"""What `muster whatif` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from cli.output import Listing
from muster.v1 import what_if_pb2

COLUMNS: Final = ("GROUP", "TOPIC", "PARTITION", "FROM", "TO")
MEMBER_COLUMNS: Final = ("CONSUMER-ID", "CLIENT-ID", "GROUP-INSTANCE-ID", "BEFORE", "AFTER")


def compute_listing(
    group_id: str, found: what_if_pb2.WhatIfResponse, protocol: str = ""
) -> Listing:
    """The moves, under a summary."""
    rows = compute_moves(group_id, found.moves)
    content: dict[str, Any] = {
        "group_id": group_id,
        "assignor": found.assignor,
        "protocol": protocol or None,
        "moves": describe_moves(found.moves),
        "members": [_describe_member(each) for each in found.members],
        "balance": {
            "before": _compute_balance(_find_before(found)),
            "after": _compute_balance(_find_after(found)),
        },
        "idle": find_idle(found),
        "epochs": found.epochs,
        "rounds": found.rounds,
        "waits_for": list(found.waits_for),
        "truncated": found.truncated,
    }
    preface = compute_summary(group_id, found, protocol)
    return Listing("whatif", COLUMNS, rows, content, "moves", 0, preface)


def compute_moves(group_id: str, moves: Iterable[what_if_pb2.PartitionMove]) -> list[list[object]]:
    """A row for each move."""
    return [
        [group_id, move.topic_name, move.partition, move.from_member_id, move.to_member_id]
        for move in moves
    ]


def describe_moves(moves: Iterable[what_if_pb2.PartitionMove]) -> list[dict[str, Any]]:
    """The moves for programs."""
    return [
        {
            "topic": move.topic_name,
            "partition": move.partition,
            "from": move.from_member_id or None,
            "to": move.to_member_id or None,
        }
        for move in moves
    ]


def compute_member_rows(found: what_if_pb2.WhatIfResponse) -> list[list[object]]:
    """A row for each member, before and after."""
    return [
        [
            each.member_id,
            each.client_id,
            each.instance_id,
            each.partitions_before if each.HasField("partitions_before") else "new",
            each.partitions_after if each.HasField("partitions_after") else "gone",
        ]
        for each in found.members
    ]


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
        f"partitions per member: {_render_balance(_find_before(found))} before, "
        f"{_render_balance(_find_after(found))} after",
        f"idle: {', '.join(idle) if idle else 'nobody'}",
        f"converges after {until}",
    ]
    if found.waits_for:
        lines.append(f"waits for {', '.join(found.waits_for)}, away and still an owner")
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


def _find_before(found: what_if_pb2.WhatIfResponse) -> list[int]:
    has = (each for each in found.members if each.HasField("partitions_before"))
    return [each.partitions_before for each in has]


def _find_after(found: what_if_pb2.WhatIfResponse) -> list[int]:
    has = (each for each in found.members if each.HasField("partitions_after"))
    return [each.partitions_after for each in has]


def _compute_balance(counts: Sequence[int]) -> dict[str, float] | None:
    if not counts:
        return None
    mean = round(sum(counts) / len(counts), 2)
    return {"members": len(counts), "min": min(counts), "max": max(counts), "mean": mean}


def _render_balance(counts: Sequence[int]) -> str:
    if not counts:
        return "no members"
    return f"{min(counts)} to {max(counts)} ({_count(len(counts), 'member')})"


def _describe_member(each: what_if_pb2.MemberLoad) -> dict[str, Any]:
    return {
        "member_id": each.member_id,
        "instance_id": each.instance_id or None,
        "client_id": each.client_id,
        "before": each.partitions_before if each.HasField("partitions_before") else None,
        "after": each.partitions_after if each.HasField("partitions_after") else None,
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
