"""Fields of requests that many tests send."""

from __future__ import annotations

from typing import Any


def join(group: str, member: str, topics: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    """The fields of a joining heartbeat."""
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": 0,
        "rebalance_timeout": 300_000,
        "subscribed_topic_names": topics,
        "topic_partitions": (),
        **fields,
    }


def beat(group: str, member: str, epoch: int, **fields: Any) -> dict[str, Any]:
    """The fields of a heartbeat without changes."""
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "rebalance_timeout": -1,
        "subscribed_topic_names": None,
        "topic_partitions": None,
        **fields,
    }


def commit(group: str, topic: str, offsets: dict[int, int]) -> dict[str, Any]:
    """The fields of a commit by a non-member, versions 2 to 9."""
    rows = [
        {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
        for partition, offset in offsets.items()
    ]
    return {"group_id": group, "topics": [{"name": topic, "partitions": rows}]}
