"""Limits the work of each connection per event-loop iteration, and schedules the rest.

A client may pipeline requests that take seconds to answer. One iteration handles some of them,
then other connections get their turn. A connection with a single request is served as it arrives;
connections with more take turns, a few milliseconds of them all per iteration.

An iteration ends soon however many requests arrive at once. A request that arrives in an iteration
that has run long waits for the next one, where single requests go first. Otherwise short-lived
connections could stretch an iteration until nobody can connect, since each iteration accepts only
a few connections.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.connected import Connected
from gateway.wire_clock import Clock

REQUESTS: Final = 128
"""Requests of one connection handled per iteration."""
REQUESTS_IN_A_CROWD: Final = 8
"""Requests of one connection handled per iteration while other connections wait."""
ARRIVALS_S: Final = 0.006
"""How long after the waiting connections' turns new requests are served as they arrive, and how
long connections with a single request run per iteration."""
TURN_S: Final = 0.003
"""How long one connection may start requests in an iteration, and how long all waiting connections
together may."""
ANSWER_BYTES: Final = 1024 * 1024
"""Response bytes of one connection after which it handles no more requests in an iteration."""


class Turns:
    """The connections with deferred requests.

    ``now`` returns seconds and must advance within an iteration (the loop's cached time does not).
    """

    def __init__(self, clock: Clock, now: Callable[[], float]) -> None:
        self._clock = clock
        self.now = now
        self._single: deque[Connected] = deque()
        self._waiting: deque[Connected] = deque()
        self._arrivals_until = 0.0
        self._is_going_on = False

    @property
    def requests(self) -> int:
        """How many requests of one connection may be handled now."""
        if not (self._single or self._waiting):
            return REQUESTS
        return REQUESTS_IN_A_CROWD if self.now() <= self._arrivals_until else 0

    def add(self, connection: Connected, *, is_single: bool) -> None:
        """Queue the connection for a later iteration, behind those that wait.

        ``is_single``: it has at most one request.
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
