"""Validates replica assignments of CreateTopics and CreatePartitions."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.topics.topic_catalogue import TopicDataError
from model.errors import ErrorCode


def check_assignment(broker_ids: Sequence[int], node_id: int) -> None:
    """Raise ``TopicDataError`` unless the only replica is on this server."""
    if list(broker_ids) != [node_id]:
        raise TopicDataError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"A partition must have one replica, on broker {node_id}, not on {list(broker_ids)}.",
        )
