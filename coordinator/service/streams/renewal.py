"""Renews the sessions of all members of a stream, cheaply while the members stay the same."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.runtime.api import Coordinator, MemberTicket
from coordinator.service.streams.sessions import MemberKey


class Renewal:
    """Keeps a ticket for each member; once one is void, it looks every member up by its ids."""

    __slots__ = ("_coordinator", "_tickets")

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._tickets: list[MemberTicket] = []

    def forget(self) -> None:
        """Drop the tickets: members came or left."""
        self._tickets = []

    def renew(self, keys: Sequence[MemberKey], monotonic_ms: int) -> list[MemberKey]:
        """Renew all members; returns those that are no longer members."""
        if len(self._tickets) == len(keys) and self._use_tickets(monotonic_ms):
            return []
        coordinator = self._coordinator
        gone = [key for key in keys if not coordinator.touch(*key)]
        tickets = [coordinator.ticket(*key) for key in keys]
        self._tickets = [ticket for ticket in tickets if ticket is not None]
        return gone

    def _use_tickets(self, monotonic_ms: int) -> bool:
        for ticket in self._tickets:  # noqa: SIM110 - a generator would cost as much as the touch
            if not ticket.touch(monotonic_ms):
                return False
        return True
