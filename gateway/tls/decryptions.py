"""Bounds the time for which received records are decrypted in one event-loop iteration.

Records may be tiny, and each has its price: a few hundred kilobytes of them, received at once, take
tens of milliseconds. A connection that sends few bytes at a time is served as they arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from gateway.wire_clock import Clock

TURN_S: Final = 0.003
"""How long larger pieces are decrypted as they arrive, and how long those that wait, per
iteration."""


class Waiting(Protocol):
    """A connection with records that have to wait."""

    def take_turn(self) -> None:
        """Decrypt another piece."""


class Decryptions:
    """``now`` must advance within an iteration."""

    def __init__(self, clock: Clock, now: Callable[[], float]) -> None:
        self._clock = clock
        self._now = now
        self._queue: deque[Waiting] = deque()
        self._until: float | None = None
        self._is_going_on = False

    def has_time(self) -> bool:
        """Whether another piece may be decrypted in this iteration."""
        if self._until is None:
            self._until = self._now() + TURN_S
            self._clock.call_later(0, self._begin_anew)
            return True
        return self._now() <= self._until

    def add(self, waiting: Waiting) -> None:
        """Let it go on in a later iteration."""
        self._queue.append(waiting)
        if not self._is_going_on:
            self._is_going_on = True
            self._clock.call_later(0, self._go_on)

    def _begin_anew(self) -> None:
        self._until = None

    def _go_on(self) -> None:
        until = self._now() + TURN_S
        for _ in range(len(self._queue)):
            self._queue.popleft().take_turn()
            if self._now() > until:
                break
        self._is_going_on = bool(self._queue)
        if self._is_going_on:
            self._clock.call_later(0, self._go_on)
