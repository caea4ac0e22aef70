"""The clock of the door: an asyncio loop is one, and so is the virtual clock of a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Do not call it; does nothing once it was called."""


class Clock(Protocol):
    """Monotonic time and calls at later times, on the loop."""

    def time(self) -> float:
        """Monotonic seconds; the same clock as ``time.monotonic``."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        """Call ``callback`` on the loop after ``delay`` seconds."""
