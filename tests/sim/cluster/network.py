"""The ways between the clients and the server.

As over TCP, what goes one way arrives in the order in which it was sent or not at all; between
clients any order comes about. A duplicate arrives with its original: of a later one KIP-848 cannot
tell that it is stale, for its requests have no numbers. Commits are the exception: they may arrive
twice at any time. A client whose heartbeat was doubled says everything in its next one, as one does
that has sent it again by itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.sim.faults import Faults
from tests.support.virtual.scheduler import VirtualScheduler

FAST_MS = (0, 5)
SLOW_MEAN_MS = 400


class Network:
    """Decides how long each message takes, and which are lost."""

    def __init__(self, time: VirtualScheduler, rng: random.Random, faults: Faults) -> None:
        self.time = time
        self.random = rng
        self.faults = faults

    def delay_ms(self) -> int:
        """How long a message is on its way."""
        if self.faults.strikes("message delayed"):
            return int(self.random.expovariate(1 / SLOW_MEAN_MS)) + 1
        return self.random.randint(*FAST_MS)


class Way:
    """One direction between a client and the server."""

    def __init__(self, network: Network, loss: str) -> None:
        self._network = network
        self._loss = loss
        self._last_ms = 0

    def carry(self, deliver: Callable[[], None]) -> bool:
        """Deliver after what was carried before; ``False`` if it is lost."""
        network = self._network
        if network.faults.strikes(self._loss):
            return False
        at_ms = max(self._last_ms, network.time.now_ms + network.delay_ms())
        self._last_ms = at_ms
        network.time.call_later_ms(at_ms - network.time.now_ms, deliver)
        return True

    def carry_late(self, deliver: Callable[[], None]) -> None:
        """Deliver at any time, out of order."""
        late_ms = self._network.random.randint(1, 3_000)
        self._network.time.call_later_ms(late_ms, deliver)

    def follow(self, other: Way) -> None:
        """Deliver nothing before what the other way still carries."""
        self._last_ms = max(self._last_ms, other._last_ms)
