"""Closes idle connections to admit new ones when ``max.connections`` is reached."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from gateway.connected import Connected

SILENT_S: Final = 5.0
"""A connection that has never sent a byte may be closed after this long."""
IDLE_S: Final = 60.0
"""A connection that has sent requests and waits for nothing may be closed after this long."""
_SHARE: Final = 100
_LOOK_S: Final = 1.0


class IdleConnections:
    """The idle ones among ``connections``, which may number ``most``."""

    def __init__(self, connections: Collection[Connected], most: int) -> None:
        self._connections = connections
        self._most = most
        self._next_look = 0.0

    def make_room(self, now: float) -> bool:
        """Whether one more connection may be accepted; at the limit, close idle ones first.

        Closes up to 1% of the limit: connections that never sent a byte before all others, then
        those silent for the longest. After finding none it looks again only a second later.
        """
        if len(self._connections) < self._most:
            return True
        if now < self._next_look:
            return False
        idle = []
        for connection in self._connections:
            since = connection.compute_idle_since()
            if since is not None and now - since[1] >= (IDLE_S if since[0] else SILENT_S):
                idle.append((since, connection))
        idle.sort(key=lambda pair: pair[0])
        for _, connection in idle[: max(1, self._most // _SHARE)]:
            connection.refuse("idle", "max.connections is reached and the connection is idle")
        if not idle:
            self._next_look = now + _LOOK_S
        return len(self._connections) < self._most
