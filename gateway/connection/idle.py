"""Room for who comes where ``max.connections`` are there: those that do nothing go first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from gateway.connected import Connected

SILENT_S: Final = 5.0
"""A connection that has not sent a byte for this long may go."""
IDLE_S: Final = 60.0
"""And one that has, and waits for nothing."""
_SHARE: Final = 100
_LOOK_S: Final = 1.0


class IdleConnections:
    """Those of ``connections``, of which there may be ``most``."""

    def __init__(self, connections: Collection[Connected], most: int) -> None:
        self._connections = connections
        self._most = most
        self._next_look = 0.0

    def make_room(self, now: float) -> bool:
        """Whether one more may come; closes a hundredth of all where there are too many.

        First those that have never sent anything, then those that were silent for the longest.
        Looked for once a second at most if there was none.
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
            connection.refuse("idle", "max.connections is reached, and it does nothing")
        if not idle:
            self._next_look = now + _LOOK_S
        return len(self._connections) < self._most
