"""What the rooms that all connections share may ask of one."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Connected(Protocol):
    """A connection, as those see it that look after all of them."""

    transport: asyncio.Transport | None

    @property
    def is_idle(self) -> bool:
        """Whether every request was answered."""

    def take_turn(self) -> None:
        """Go on with what had to wait for a later turn."""

    def drain(self) -> None:
        """Read no more, and answer now what waits."""

    def check_deadlines(self, now: float) -> None:
        """Close if it is idle, or too slow in sending or in reading."""

    def compute_idle_since(self) -> tuple[bool, float] | None:
        """Whether it has ever sent anything, and when it was heard; ``None`` where it is busy."""

    def weigh_request(self, now: float) -> float:
        """What of its requests is there for how long; next to nothing of bytes that wait for us."""

    def measure_answers(self, now: float) -> float:
        """Count what is made and not sent; its weight is how much for how long."""

    def refuse(self, reason: str, detail: str) -> None:
        """Close for what it sent, after the answers that it has coming."""

    def cut(self, reason: str, detail: str) -> None:
        """Close at once for what it does; what it has not read is lost."""

    def close(self) -> None:
        """Close after what was answered is sent."""

    def abort(self) -> None:
        """Close at once."""
