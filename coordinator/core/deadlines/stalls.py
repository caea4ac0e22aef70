"""The clock of deadlines: it stands still while the process does, as far as that is forgiven.

Nobody could be heard from meanwhile. But turns that take long, one after another, are no pause:
what came before each of them was handled. So a pause is forgiven once in ``PARDON_AGAIN_MS``, and
of all else that comes late ``GRACE_MS`` in as long.
"""

from __future__ import annotations

NEVER_MS = 1 << 62

LATE_MS = 50
"""Less is the resolution of timers, not a stall."""

GRACE_MS = 2_000
"""What is not more, and comes more often than a pause, is forgiven so far: a third of the shortest
session timeout that Kafka allows, within which its clients send a heartbeat.
"""

PARDON_AGAIN_MS = 10_000
"""So long the process has to run before a pause is forgiven again. Who is alive was heard then."""


class Stalls:
    """For how long the process has stood still. Times given are monotonic milliseconds."""

    __slots__ = ("_grace_ms", "_grace_since_ms", "_pardoned_ms", "late_after_ms", "stalled_ms")

    def __init__(self) -> None:
        self.stalled_ms = 0
        """How long the clock here has stood still in all."""
        self._pardoned_ms = -PARDON_AGAIN_MS
        self._grace_ms = GRACE_MS
        self._grace_since_ms = -PARDON_AGAIN_MS
        self.late_after_ms = NEVER_MS
        """From then on the shell is late, and whoever comes first calls ``catch_up``."""

    def expect(self, at_ms: int) -> None:
        """The shell means to come back then."""
        self.late_after_ms = at_ms + LATE_MS

    def catch_up(self, now_ms: int) -> int:
        """See whether the process has stood still; for how long, 0 if it has not.

        Not only the tick does: after a stall requests are read first, and what they begin must
        not be moved by a stall that was before them.
        """
        if now_ms <= self.late_after_ms:
            return 0
        late_ms = now_ms - (self.late_after_ms - LATE_MS)
        self.stalled_ms += self._forgive(late_ms, now_ms - late_ms - self.stalled_ms)
        self.late_after_ms += late_ms
        return late_ms

    def _forgive(self, late_ms: int, at_ms: int) -> int:
        """For how much of it the clock here stands still; it began ``at_ms`` on that clock."""
        if late_ms > GRACE_MS and at_ms - self._pardoned_ms >= PARDON_AGAIN_MS:
            self._pardoned_ms = at_ms
            return late_ms
        if at_ms - self._grace_since_ms >= PARDON_AGAIN_MS:
            self._grace_ms, self._grace_since_ms = GRACE_MS, at_ms
        forgiven_ms = min(late_ms, self._grace_ms)
        self._grace_ms -= forgiven_ms
        return forgiven_ms
