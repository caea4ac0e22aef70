"""Until when a member may believe that it owns its partitions; pure.

The server expires a member when its session timeout has passed since it last *received* a message.
The client cannot see that moment, but it knows when it *sent* each message, and the server
says which message last renewed the sessions (``renewed_sequence``). It was received after it was
sent, so a lease that runs from the sending ends before the server's session does, and the
partitions are given up here before they are given away there. That is invariant S2: no two
members that are neither expired nor fenced believe they own the same partition.

The server keeps its side against every deadline of its own
(``coordinator.core.deadlines.liveness``): it remembers the longest session timeout that a member
was told, over a restart that of its group; and where the rebalance timeout passes first, it stops
renewing the member, says so, and waits for the lease to end. A member that is told a shorter
session timeout keeps to it at once.

Kafka's classic protocol knows no lease, so there the member does both: a rebalance that puts it
out may have begun right after the last answer that knew of none (``ClassicLease``), and its lease
ends before the rebalance timeout has passed since that was asked for.

A member id is one owner's at a time: another one that joins with it, or with the instance id of a
member, waits for the end of that session. Only in classic groups an instance has its successor at
once, as in Kafka, and the one before believes to be it until its next heartbeat is answered, or its
lease ends.

It holds as far as the clocks of both run at the same rate; ``MARGIN`` pays for the difference, and
for the time that ``on_lost`` takes to begin. It does not hold where the session timeout of the
server itself is shortened by a restart, for members that cannot be reached meanwhile; nor for an
application that acts on a partition without asking ``Member.assignment``, for a process may be
stopped between asking and acting. Against that only what keeps the partition's data can help, by
checking epochs.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

MARGIN: Final = 0.05
MARGIN_MAX_S: Final = 0.5
_RESOLUTION_S: Final = 0.02
_BEATS_IN_A_LEASE: Final = 3


def read_clock() -> float:
    """Seconds that also pass while the machine sleeps, where the platform can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def read_wall_clock_us() -> int:
    """Microseconds that go on while no process runs: of two runs the later one reads more."""
    return time.time_ns() // 1_000


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


class ClassicLease:
    """How long one member of a classic group stays one without an answer.

    Members that are missing when a rebalance has taken the rebalance timeout are put out. It began
    after the server was asked what it answered without knowing of one. Who has joined is put out
    by none while the others are waited for, however long: heartbeats are answered that the join
    is held, and the timeout of what follows begins later than that was asked. A join that is only
    sent lengthens nothing: where its connection is half-open, the server waits for it no longer.

    In a consumer group nobody waits in a join. There the rebalance timeout runs from when a member
    was told first that it has a step to take until it joins with nothing left to give up.
    """

    __slots__ = ("_rebalance_s", "_renewed_at", "_session_s", "_undisturbed_at")

    def __init__(self, session_timeout_ms: int, rebalance_timeout_ms: int) -> None:
        self._session_s = compute_lease_s(session_timeout_ms)
        self._rebalance_s = compute_lease_s(rebalance_timeout_ms)
        self._renewed_at = self._undisturbed_at = float("-inf")

    def note_renewed(self, sent_at: float) -> None:
        """What was sent then was answered: it has begun the session anew."""
        self._renewed_at = max(self._renewed_at, sent_at)

    def note_undisturbed(self, sent_at: float) -> None:
        """What was sent then was answered so that the member was not being waited for."""
        self._undisturbed_at = max(self._undisturbed_at, sent_at)

    def compute_deadline(self) -> float:
        """When the lease ends, in seconds of ``read_clock``."""
        return min(self._renewed_at + self._session_s, self._undisturbed_at + self._rebalance_s)

    def compute_interval_s(self, heartbeat_interval_ms: int) -> float:
        """From heartbeat to heartbeat: several in each timeout that the lease depends on."""
        shortest_s = min(self._session_s, self._rebalance_s)
        return min(heartbeat_interval_ms / 1000, shortest_s / _BEATS_IN_A_LEASE)


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

    def note_told(self, session_timeout_ms: int) -> None:
        """An Assignment tells the timeout that is in force now: a shorter one holds from now on."""
        self._duration_s = min(self._duration_s, compute_lease_s(session_timeout_ms))

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
