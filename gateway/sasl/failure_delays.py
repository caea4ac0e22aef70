"""Holds back the answers to failed authentications, so that guessing is slow.

Nobody else waits meanwhile. Their number is bounded: beyond it the oldest is answered early.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from gateway.wire_clock import Clock

MOST: Final = 1_000


class FailureDelays:
    """The failed authentications of a server that are not answered yet."""

    def __init__(self, clock: Clock, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._numbers = count()
        self._waiting: dict[int, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, delay_ms: int, finish: Callable[[], None]) -> None:
        """Call ``finish`` in ``delay_ms``, or earlier if there are too many."""
        if not delay_ms:
            finish()
            return
        number = next(self._numbers)
        self._waiting[number] = finish
        self._clock.call_later(delay_ms / 1_000, lambda: self._finish(number))
        if len(self._waiting) > self._most:
            self._finish(next(iter(self._waiting)))

    def _finish(self, number: int) -> None:
        finish = self._waiting.pop(number, None)
        if finish is not None:
            finish()
