"""The clock of one client: it runs a little faster or slower than the server's, from elsewhere."""

from __future__ import annotations

import random

from tests.support.virtual.scheduler import VirtualScheduler

DRIFT = 0.01
"""The most that a client's clock gains or loses: 1 %."""
TRUST = 0.95
"""The part of a session timeout for which a client trusts its own clock."""


class ClientClock:
    """Milliseconds as a client measures them."""

    def __init__(self, time: VirtualScheduler, rng: random.Random) -> None:
        self._time = time
        self._rate = 1 + rng.uniform(-DRIFT, DRIFT)
        self._offset_ms = rng.randint(-3_600_000, 3_600_000)

    def now_ms(self) -> float:
        return self.at(self._time.now_ms)

    def at(self, world_ms: float) -> float:
        """What this clock showed or will show then."""
        return world_ms * self._rate + self._offset_ms

    def to_world_ms(self, duration_ms: float) -> int:
        """How long it takes in truth until so much has passed by this clock."""
        return max(round(duration_ms / self._rate), 0)
