"""Which connections have a request of a group that waits in the broker."""

from __future__ import annotations

from typing import Protocol


class Waiting(Protocol):
    """A connection."""

    def end_waits(self, group_id: str) -> None:
        """Answer the waiting requests of the group here."""


class Waits:
    """By group, each connection with how many of its requests wait."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Waiting, int]] = {}

    def add(self, group_id: str, connection: Waiting) -> None:
        """A request of the group begins to wait."""
        waiting = self._groups.setdefault(group_id, {})
        waiting[connection] = waiting.get(connection, 0) + 1

    def remove(self, group_id: str, connection: Waiting) -> None:
        """It is answered, or its connection is gone."""
        waiting = self._groups.get(group_id)
        if waiting is None or connection not in waiting:
            return
        waiting[connection] -= 1
        if not waiting[connection]:
            del waiting[connection]
        if not waiting:
            del self._groups[group_id]

    def end(self, group_id: str) -> None:
        """End all waiting of the group."""
        for connection in tuple(self._groups.get(group_id, ())):
            connection.end_waits(group_id)
