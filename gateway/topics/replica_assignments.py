"""Replica assignments that clients ask for; with one server there is little to choose."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.topics.topic_catalogue import TopicDataError
from model.errors import ErrorCode


def check_assignment(broker_ids: Sequence[int], node_id: int) -> None:
    """Raises ``TopicDataError`` unless the one replica is to be on this server."""
    if list(broker_ids) != [node_id]:
        raise TopicDataError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"a partition has one replica, on node {node_id}, not on {list(broker_ids)}",
        )
