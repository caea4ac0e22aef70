"""Until when a member may believe that it owns its partitions; pure.

The server expires a member when its session timeout has passed since it last *received* a message.
The client cannot see that moment, but it knows when it *sent* each message, and the server
says which message last renewed the sessions (``renewed_sequence``). It was received after it was
sent, so a lease that runs from the sending ends before the server's session does, and the
partitions are given up here before they are given away there. That is invariant S2: no two
members that are neither expired nor fenced believe they own the same partition.

It holds as far as the clocks of both run at the same rate; ``MARGIN`` pays for the difference, and
for the time that ``on_lost`` takes to begin. It does not hold over a restart of the server that
shortens the session timeout, for members that cannot be reached meanwhile; nor for an application
that acts on a partition without asking ``Member.assignment``, for a process may be stopped between
asking and acting. Against that only what keeps the partition's data can help, by checking epochs.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

MARGIN: Final = 0.05
MARGIN_MAX_S: Final = 0.5
_RESOLUTION_S: Final = 0.02


def read_clock() -> float:
    """Seconds that also pass while the machine sleeps, where the platform can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def compute_lease_s(session_timeout_ms: int) -> float:
    """How long a lease lasts from the sending of a message that the server has received."""
    timeout_s = session_timeout_ms / 1000
    return timeout_s - min(timeout_s * MARGIN, MARGIN_MAX_S)


class SentMessages:
    """When the messages of one stream were sent, as far as they are not known to be received.

    ``renewed_sequence`` and ``renewed_at`` are of the latest one known to have renewed sessions.
    """

    __slots__ = ("_sent", "renewed_at", "renewed_sequence")

    def __init__(self) -> None:
        self._sent: deque[tuple[int, float]] = deque()
        self.renewed_sequence = 0
        self.renewed_at = float("-inf")

    def note_sent(self, sequence: int, now: float) -> None:
        """A message is about to be sent. Of many in a short time the first stands for all."""
        if not self._sent or now - self._sent[-1][1] >= _RESOLUTION_S:
            self._sent.append((sequence, now))

    def note_renewed(self, sequence: int) -> None:
        """The server says that this message renewed the sessions of the stream's members."""
        while self._sent and self._sent[0][0] <= sequence:
            self.renewed_at = self._sent.popleft()[1]
        self.renewed_sequence = max(self.renewed_sequence, sequence)


class Lease:
    """How long one member stays one without news; its deadline is in seconds of ``read_clock``."""

    __slots__ = ("_at", "_covered_from", "_duration_s", "_join_sent_at")

    def __init__(self) -> None:
        self._at = float("-inf")
        self._join_sent_at = float("-inf")
        self._covered_from: int | None = None
        self._duration_s = 0.0

    def note_join_sent(self, now: float) -> None:
        """A Join is about to be sent; renewals of its stream count from the answer on."""
        self._join_sent_at = now
        self._covered_from = None

    def note_joined(self, next_sequence: int, session_timeout_ms: int) -> None:
        """The Join was answered; messages from ``next_sequence`` on renew this member too."""
        self._at = max(self._at, self._join_sent_at)
        self._covered_from = next_sequence
        self._duration_s = compute_lease_s(session_timeout_ms)

    def settle(self, sent: SentMessages) -> None:
        """The stream no longer renews this member; what it has renewed stays."""
        self._at = self._compute_at(sent)
        self._covered_from = None

    def end(self) -> None:
        """The member is none any more."""
        self._at = float("-inf")
        self._covered_from = None

    def compute_deadline(self, sent: SentMessages | None) -> float:
        """When the lease ends, as far as it is known now."""
        return (self._at if sent is None else self._compute_at(sent)) + self._duration_s

    def _compute_at(self, sent: SentMessages) -> float:
        if self._covered_from is None or sent.renewed_sequence < self._covered_from:
            return self._at
        return max(self._at, sent.renewed_at)
