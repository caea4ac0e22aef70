"""The interface of a connection to the modules that manage all connections."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Connected(Protocol):
    """A connection, as the listener-wide limits, sweeps and schedulers see it."""

    transport: asyncio.Transport | None

    @property
    def is_idle(self) -> bool:
        """Whether every request is answered."""

    @property
    def is_parked(self) -> bool:
        """Whether a heartbeat is held back until there is a change for its member."""

    def hold_back(self) -> None:
        """Read nothing until ``let_in``: the connection was made too soon."""

    def let_in(self) -> None:
        """Read from now on."""

    def take_turn(self) -> None:
        """Continue with the requests that were deferred to a later iteration."""

    def drain(self) -> None:
        """Stop reading, and answer now every request that waits."""

    def check_deadlines(self, now: float) -> None:
        """Close the connection if it is idle, or if its client sends or reads too slowly."""

    def compute_idle_since(self) -> tuple[bool, float] | None:
        """Whether the client ever sent a byte, and when it last did; ``None`` if it is busy."""

    def weigh_request(self, now: float) -> float:
        """Bytes held by its requests; a partial frame gains weight with age, unless we defer it."""

    def measure_answers(self, now: float) -> float:
        """Count the unsent response bytes; their weight grows with the time the client stalls."""

    def refuse(self, reason: str, detail: str) -> None:
        """Log a refusal and close, after the responses that are already written."""

    def cut(self, reason: str, detail: str) -> None:
        """Log a refusal and close at once; unsent responses are lost."""

    def close(self) -> None:
        """Close once the answered responses are sent."""

    def abort(self) -> None:
        """Close at once."""
