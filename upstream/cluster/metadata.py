"""Who the cluster is, as Metadata says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from upstream.cluster.cluster import ClusterBroker

METADATA: Final = 3
BROKERS_MAX: Final = 10_000
NO_TOPICS: Final = ClientRequest(METADATA, {"topics": (), "allow_auto_topic_creation": False})
"""In version 0 this asks for all topics; no broker that serves no other is supported."""


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """``cluster_id`` is empty where the broker does not say it."""

    cluster_id: str = ""
    controller_id: int = -1
    brokers: Mapping[int, ClusterBroker] = field(default_factory=dict)


def compute_image(answer: Any) -> ClusterImage:
    """The image in an answer to Metadata."""
    brokers = {
        row.node_id: ClusterBroker(row.node_id, row.host, row.port, getattr(row, "rack", None))
        for row in answer.brokers[:BROKERS_MAX]
    }
    return ClusterImage(
        getattr(answer, "cluster_id", None) or "", getattr(answer, "controller_id", -1), brokers
    )
