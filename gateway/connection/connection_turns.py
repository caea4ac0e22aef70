"""How much one connection may do in a turn of the loop, and who goes on in a later one.

A client may pipeline what takes seconds to answer. It gets a part of that done in a turn, then
others have theirs: a connection that has a single request is served as it comes, those that have
more go on one after another, a few milliseconds of them all in a turn.

However many come at once, a turn of the loop ends soon: who comes when it has taken long waits
for the next one, with a single request before those who have more. Else those who come, ask and
go would hold it up until nobody can connect, for in one turn only so many are accepted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.connected import Connected
from gateway.wire_clock import Clock

REQUESTS: Final = 128
"""Requests of one connection that are handled in a turn."""
REQUESTS_IN_A_CROWD: Final = 8
"""The same while others wait for their turns."""
ARRIVALS_S: Final = 0.006
"""As long after the turns of those that wait, requests are served as they come; and as long single
requests have their turns."""
TURN_S: Final = 0.003
"""No request is begun in a turn that has taken as long; for all that wait as for each of them."""
ANSWER_BYTES: Final = 1024 * 1024
"""Answers of one connection that are made in a turn."""


class Turns:
    """The connections that have more to do. ``now`` is seconds that pass within a turn too."""

    def __init__(self, clock: Clock, now: Callable[[], float]) -> None:
        self._clock = clock
        self.now = now
        self._single: deque[Connected] = deque()
        self._waiting: deque[Connected] = deque()
        self._arrivals_until = 0.0
        self._is_going_on = False

    @property
    def requests(self) -> int:
        """How many requests a connection may have handled now."""
        if not (self._single or self._waiting):
            return REQUESTS
        return REQUESTS_IN_A_CROWD if self.now() <= self._arrivals_until else 0

    def add(self, connection: Connected, *, is_single: bool) -> None:
        """Let this connection go on in a later turn, after those that wait already.

        ``is_single``: it has one request at most.
        """
        (self._single if is_single else self._waiting).append(connection)
        if not self._is_going_on:
            self._is_going_on = True
            self._arrivals_until = self.now() + ARRIVALS_S
            self._clock.call_later(0, self._go_on)

    def _go_on(self) -> None:
        self._arrivals_until = math.inf
        self._serve(self._single, ARRIVALS_S)
        self._serve(self._waiting, TURN_S)
        self._arrivals_until = self.now() + ARRIVALS_S
        self._is_going_on = bool(self._single or self._waiting)
        if self._is_going_on:
            self._clock.call_later(0, self._go_on)

    def _serve(self, connections: deque[Connected], seconds: float) -> None:
        until = self.now() + seconds
        for _ in range(len(connections)):
            connections.popleft().take_turn()
            if self.now() > until:
                break
