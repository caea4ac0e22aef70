"""How much one connection may do in a turn of the loop, and who goes on in a later one.

A client may pipeline what takes seconds to answer. It gets a part of that done in a turn, then
others have theirs: a connection that has a single request is served as it comes, those that have
more go on one after another, a few milliseconds of them all in a turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.clock import Clock
    from gateway.connection import Connection

REQUESTS: Final = 128
"""Requests of one connection that are handled in a turn."""
REQUESTS_IN_A_CROWD: Final = 8
"""The same while others wait for their turns."""
TURN_S: Final = 0.003
"""No request is begun in a turn that has taken as long; for all that wait as for each of them."""
ANSWER_BYTES: Final = 1024 * 1024
"""Answers of one connection that are made in a turn."""


class Turns:
    """The connections that have more to do. ``now`` is seconds that pass within a turn too."""

    def __init__(self, clock: Clock, now: Callable[[], float]) -> None:
        self._clock = clock
        self.now = now
        self._waiting: deque[Connection] = deque()
        self._is_going_on = False

    @property
    def requests(self) -> int:
        """How many requests a connection may have handled now."""
        return REQUESTS_IN_A_CROWD if self._waiting else REQUESTS

    def add(self, connection: Connection) -> None:
        """Let this connection go on in a later turn, after those that wait already."""
        self._waiting.append(connection)
        if not self._is_going_on:
            self._is_going_on = True
            self._clock.call_later(0, self._go_on)

    def _go_on(self) -> None:
        waiting = self._waiting
        until = self.now() + TURN_S
        for _ in range(len(waiting)):
            waiting.popleft().take_turn()
            if self.now() > until:
                break
        self._is_going_on = bool(waiting)
        if waiting:
            self._clock.call_later(0, self._go_on)
