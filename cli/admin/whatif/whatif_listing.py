"""What `muster whatif` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cli.output import Listing
from muster.v1 import what_if_pb2
from wording.whatif import compute_balance, compute_summary, find_after, find_before, find_idle

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
            "before": compute_balance(find_before(found)),
            "after": compute_balance(find_after(found)),
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


def _describe_member(each: what_if_pb2.MemberLoad) -> dict[str, Any]:
    return {
        "member_id": each.member_id,
        "instance_id": each.instance_id or None,
        "client_id": each.client_id,
        "before": each.partitions_before if each.HasField("partitions_before") else None,
        "after": each.partitions_after if each.HasField("partitions_after") else None,
    }
