"""Leases: until when a member may believe that it owns its partitions; pure.

The server expires a member when the session timeout has passed since it last *received* a message.
The client cannot see that moment, but it knows when it *sent* each message, and the server reports
which message last renewed the sessions (``renewed_sequence``). That message was received after it
was sent, so a lease that runs from the sending ends before the server's session does, and the
client gives up its partitions before the server assigns them to others. That is invariant S2: no
two members that are neither expired nor fenced believe that they own the same partition.

The server keeps to the lease with each deadline of its own
(``coordinator.core.deadlines.liveness``). It remembers the longest session timeout that it has sent
to a member, and across a restart that of the group. If the rebalance timeout passes first, it stops
renewing the member, fences it, and waits for the lease to end. A member that receives a shorter
session timeout applies it at once.

Kafka's classic protocol has no lease, so the client alone accounts for both timeouts: a rebalance
that removes the member may have begun right after the last answer that did not mention one
(``ClassicLease``), so the lease ends before the rebalance timeout has passed since that request.

A member id has one owner at a time: another client that joins with it, or with the instance id of a
member, waits for the end of that session. In classic groups, as in Kafka, a new member replaces the
old one of its instance id at once; the old one believes that it is the member until its next
heartbeat is answered or its lease ends.

Leases assume that both clocks run at the same rate; ``MARGIN`` covers the difference, and the time
until ``on_lost`` is called. They do not hold if a restart shortens the session timeout of the
server itself, for members that cannot be reached meanwhile; nor for an application that uses a
partition without checking ``Member.assignment``, or is suspended between the check and the use.
Only the store of the partition's data can prevent that, by checking epochs.
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
    """Monotonic seconds, which include the time that the machine was suspended if possible."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def read_wall_clock_us() -> int:
    """Wall-clock microseconds: a later run of the program reads a higher value."""
    return time.time_ns() // 1_000


def compute_lease_s(session_timeout_ms: int) -> float:
    """The duration of a lease, from the sending of the message that renewed it."""
    timeout_s = session_timeout_ms / 1000
    return timeout_s - min(timeout_s * MARGIN, MARGIN_MAX_S)


class SentMessages:
    """When each message of one stream was sent, until the server has confirmed it.

    ``renewed_sequence`` and ``renewed_at`` are those of the last message that renewed the sessions.
    """

    __slots__ = ("_sent", "renewed_at", "renewed_sequence")

    def __init__(self) -> None:
        self._sent: deque[tuple[int, float]] = deque()
        self.renewed_sequence = 0
        self.renewed_at = float("-inf")

    def note_sent(self, sequence: int, now: float) -> None:
        """A message is about to be sent. Of several in a short time only the first is noted."""
        if not self._sent or now - self._sent[-1][1] >= _RESOLUTION_S:
            self._sent.append((sequence, now))

    def note_renewed(self, sequence: int) -> None:
        """The server reports that this message renewed the sessions of the stream's members."""
        while self._sent and self._sent[0][0] <= sequence:
            self.renewed_at = self._sent.popleft()[1]
        self.renewed_sequence = max(self.renewed_sequence, sequence)


class ClassicLease:
    """The lease of one classic member, which ends with its session or with a rebalance.

    A rebalance removes the members that have not joined within the rebalance timeout. It began
    after the last request that was answered without mentioning one. A member that has joined is not
    removed while the group waits for others, however long: its heartbeats are answered with
    ``is_held``, and the next timeout begins after such a request. Sending a JoinGroup extends
    nothing, because on a half-open connection it may never arrive.

    In a consumer group no JoinGroup waits. There the rebalance timeout runs from the moment when
    the member first learns of a change until it joins with nothing left to revoke.
    """

    __slots__ = ("_rebalance_s", "_renewed_at", "_session_s", "_undisturbed_at")

    def __init__(self, session_timeout_ms: int, rebalance_timeout_ms: int) -> None:
        self._session_s = compute_lease_s(session_timeout_ms)
        self._rebalance_s = compute_lease_s(rebalance_timeout_ms)
        self._renewed_at = self._undisturbed_at = float("-inf")

    def note_renewed(self, sent_at: float) -> None:
        """A request that was sent then was answered, so it renewed the session."""
        self._renewed_at = max(self._renewed_at, sent_at)

    def note_undisturbed(self, sent_at: float) -> None:
        """The answer to a request sent then shows that no rebalance waits for the member."""
        self._undisturbed_at = max(self._undisturbed_at, sent_at)

    def compute_deadline(self) -> float:
        """When the lease ends, in seconds of ``read_clock``."""
        return min(self._renewed_at + self._session_s, self._undisturbed_at + self._rebalance_s)

    def compute_interval_s(self, heartbeat_interval_ms: int) -> float:
        """The heartbeat interval: short enough for several in each timeout of the lease."""
        shortest_s = min(self._session_s, self._rebalance_s)
        return min(heartbeat_interval_ms / 1000, shortest_s / _BEATS_IN_A_LEASE)


class Lease:
    """The lease of one member; its deadline is in seconds of ``read_clock``."""

    __slots__ = ("_at", "_covered_from", "_duration_s", "_join_sent_at")

    def __init__(self) -> None:
        self._at = float("-inf")
        self._join_sent_at = float("-inf")
        self._covered_from: int | None = None
        self._duration_s = 0.0

    def note_join_sent(self, now: float) -> None:
        """A Join is about to be sent; the stream renews the member once it is answered."""
        self._join_sent_at = now
        self._covered_from = None

    def note_joined(self, next_sequence: int, session_timeout_ms: int) -> None:
        """The Join was answered; messages from ``next_sequence`` on renew this member too."""
        self._at = max(self._at, self._join_sent_at)
        self._covered_from = next_sequence
        self._duration_s = compute_lease_s(session_timeout_ms)

    def note_told(self, session_timeout_ms: int) -> None:
        """An Assignment carries the present timeout: a shorter one applies at once."""
        self._duration_s = min(self._duration_s, compute_lease_s(session_timeout_ms))

    def settle(self, sent: SentMessages) -> None:
        """The stream no longer renews this member; the lease that it has renewed stays."""
        self._at = self._compute_at(sent)
        self._covered_from = None

    def end(self) -> None:
        """End the lease."""
        self._at = float("-inf")
        self._covered_from = None

    def compute_deadline(self, sent: SentMessages | None) -> float:
        """When the lease ends, given the messages of the open stream."""
        return (self._at if sent is None else self._compute_at(sent)) + self._duration_s

    def _compute_at(self, sent: SentMessages) -> float:
        if self._covered_from is None or sent.renewed_sequence < self._covered_from:
            return self._at
        return max(self._at, sent.renewed_at)
