"""The clock of deadlines: it stops while the process is stalled, within limits.

During a stall the process cannot receive heartbeats. A series of slow event-loop iterations is no
stall: what arrived before each of them was handled. So one stall of any length is forgiven in
``PARDON_AGAIN_MS``, and ``GRACE_MS`` of all other lateness in the same time.
"""

from __future__ import annotations

NEVER_MS = 1 << 62

LATE_MS = 50
"""Less lateness is timer resolution, not a stall."""

GRACE_MS = 2_000
"""The budget for stalls that are shorter or too frequent to be forgiven whole: a third of the
shortest session timeout that Kafka allows, within which clients send a heartbeat.
"""

PARDON_AGAIN_MS = 10_000
"""The process must run this long before another stall is forgiven whole: by then every live member
has been heard from."""


class Stalls:
    """Measures how long the process was stalled. Arguments are monotonic milliseconds."""

    __slots__ = ("_grace_ms", "_grace_since_ms", "_pardoned_ms", "late_after_ms", "stalled_ms")

    def __init__(self) -> None:
        self.stalled_ms = 0
        """The total time for which this clock was stopped."""
        self._pardoned_ms = -PARDON_AGAIN_MS
        self._grace_ms = GRACE_MS
        self._grace_since_ms = -PARDON_AGAIN_MS
        self.late_after_ms = NEVER_MS
        """After this time the runtime is late, and the first caller invokes ``catch_up``."""

    def expect(self, at_ms: int) -> None:
        """Note when the runtime intends to call next."""
        self.late_after_ms = at_ms + LATE_MS

    def catch_up(self, now_ms: int) -> int:
        """Detect a stall and return its length in ms, 0 if there was none.

        Requests call this too, not only the timer: after a stall requests are read first, and a
        stall that preceded them must not move the deadlines that they arm.
        """
        if now_ms <= self.late_after_ms:
            return 0
        late_ms = now_ms - (self.late_after_ms - LATE_MS)
        self.stalled_ms += self._forgive(late_ms, now_ms - late_ms - self.stalled_ms)
        self.late_after_ms += late_ms
        return late_ms

    def _forgive(self, late_ms: int, at_ms: int) -> int:
        """How much of a stall that began ``at_ms`` (on this clock) stops this clock, in ms."""
        if late_ms > GRACE_MS and at_ms - self._pardoned_ms >= PARDON_AGAIN_MS:
            self._pardoned_ms = at_ms
            return late_ms
        if at_ms - self._grace_since_ms >= PARDON_AGAIN_MS:
            self._grace_ms, self._grace_since_ms = GRACE_MS, at_ms
        forgiven_ms = min(late_ms, self._grace_ms)
        self._grace_ms -= forgiven_ms
        return forgiven_ms
