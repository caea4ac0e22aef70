"""The groups of a whole cluster."""

from __future__ import annotations

from typing import Final

from gateway.codec.client_frames import ClientRequest
from upstream.cluster.cluster import Cluster

LIST_GROUPS: Final = 16
_ASK_TIMEOUT_MS: Final = 10_000


async def list_groups(cluster: Cluster) -> list[str]:
    """The groups of all brokers, sorted. Raises ``ClusterUnreachable``."""
    names: set[str] = set()
    for node_id in sorted(cluster.brokers):
        response = await cluster.ask(
            ClientRequest(LIST_GROUPS, {}), node_id=node_id, timeout_ms=_ASK_TIMEOUT_MS
        )
        names.update(str(group.group_id) for group in response.groups)
    return sorted(names)
