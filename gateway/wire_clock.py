"""The listener's clock: an asyncio event loop, or a virtual clock in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback; no effect after it ran."""


class Clock(Protocol):
    """Monotonic time, and callbacks scheduled on the loop."""

    def time(self) -> float:
        """Seconds on the clock of ``time.monotonic``."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        """Call ``callback`` on the loop after ``delay`` seconds."""
