"""Whether the cluster has the consumer protocol (KIP-848) itself, and it is on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from upstream.cluster.cluster import ClusterUnreachable

CONSUMER_GROUP_DESCRIBE: Final = 69
FEATURE: Final = "group.version"
_ANY_GROUP: Final = "muster"
_TIMEOUT_MS: Final = 5_000


async def find_consumer_protocol(
    ask: Callable[[ClientRequest, int], Awaitable[Any]], versions: Mapping[int, range], level: int
) -> bool:
    """``level`` is the finalized level of ``FEATURE``.

    Brokers advertise the API and the feature also where ``group.coordinator.rebalance.protocols``
    turns the protocol off. Then they answer that they do not support it, before they look at the
    group or at rights.
    """
    if level < 1 or not versions.get(CONSUMER_GROUP_DESCRIBE):
        return False
    try:
        answer = await ask(
            ClientRequest(CONSUMER_GROUP_DESCRIBE, {"group_ids": [_ANY_GROUP]}), _TIMEOUT_MS
        )
    except ClusterUnreachable:
        return True
    return all(group.error_code != ErrorCode.UNSUPPORTED_VERSION for group in answer.groups)
