"""How long a client's next heartbeat takes once its last one was answered: pure arithmetic.

What is seen of a connection are the times from an answer to the next heartbeat. None is shorter
than a round trip of the network, with whatever hides the client's machine (a proxy that ends its
TCP connection, so that the kernel's own estimate is of another way). Most are longer: a client
waits for the interval that it was told to pass since it sent its last heartbeat (librdkafka, and
Java while the interval stays) or since it had the answer (Java when it changes). So one that came
when it was due says that the round trip is not longer, and one that came later shows the round
trip, or a client that was busy. Both need the same: more time before it gives an answer up.
"""

from __future__ import annotations

from typing import Final

FIRST_MAX_MS: Final = 1_000.0
"""A client that takes longer for its second request had nothing to ask."""
LONGEST_MS: Final = 2_000.0
SLACK_MS: Final = 10.0
"""So late is on time: timers of clients, and turns of our loop."""
BUSY_MS: Final = 50.0
"""So late may be a busy client; what is later may be a longer way."""
HELD_MS: Final = 100.0
"""After an answer that was held for so long it shows whether a client counts from it."""
GIVEN_UP_MS: Final = 100.0
"""A client that has given an answer up gets at least so much more time."""

_LATE_DECAY: Final = 0.75
_FOLLOW: Final = 0.25
_SINK: Final = 0.5
_RELAX: Final = 1 / 32


class RoundTrip:
    """What is known of one connection, in milliseconds; 0 before anything is.

    ``network_ms`` is what the way takes, ``late_ms`` how much later than that the client was of
    late; it is forgotten with some heartbeats that come in time. ``least_ms`` is the shortest way
    that was seen.
    """

    __slots__ = ("late_ms", "least_ms", "network_ms")

    def __init__(self) -> None:
        self.network_ms = 0.0
        self.late_ms = 0.0
        self.least_ms = 0.0

    @property
    def allowance_ms(self) -> float:
        """What to expect of the next one."""
        return min(self.network_ms + self.late_ms, LONGEST_MS)

    def begin(self, took_ms: float) -> None:
        """The client's second request, which it sends when it has the answer to its first."""
        self.network_ms = self.least_ms = min(took_ms, FIRST_MAX_MS)

    def inherit(self, older: RoundTrip, has_given_up: bool) -> None:
        """The client came here from another connection, because it had given an answer up, or not.

        What its first requests here have shown is worth more than what is known from there.
        """
        self.late_ms = older.late_ms
        if not self.network_ms:
            self.network_ms, self.least_ms = older.network_ms, older.least_ms
        if has_given_up:
            self.late_ms += max(self.allowance_ms, GIVEN_UP_MS)

    def learn(self, took_ms: float, told_ms: float, held_ms: float) -> None:
        """A heartbeat came ``took_ms`` after the answer to the last one.

        That had been held for ``held_ms``, and its answer told ``told_ms``.
        """
        if took_ms - told_ms > LONGEST_MS:
            return  # Its process was stopped, or had no reason to come.
        if took_ms >= told_ms - SLACK_MS:
            # It counted from the answer, or was due long ago; the rest is the way.
            way_ms, late_ms = took_ms - told_ms, took_ms - told_ms - self.network_ms
            if held_ms >= HELD_MS and way_ms < self.network_ms:
                self.network_ms -= (self.network_ms - max(0.0, way_ms)) * _FOLLOW
        else:
            due_ms = max(0.0, told_ms - held_ms)
            way_ms, late_ms = took_ms, took_ms - max(due_ms, self.network_ms)
            if took_ms - due_ms > SLACK_MS and took_ms <= self.network_ms:
                self.network_ms -= (self.network_ms - took_ms) * _FOLLOW
            elif took_ms < self.network_ms:
                self.network_ms -= (self.network_ms - took_ms) * _SINK
        if late_ms <= SLACK_MS:
            self.late_ms *= _LATE_DECAY
            self.network_ms -= (self.network_ms - min(self.least_ms, self.network_ms)) * _RELAX
            return
        self.late_ms = max(self.late_ms * _LATE_DECAY, late_ms)
        if late_ms > BUSY_MS:
            self.network_ms += max(0.0, way_ms - self.network_ms) * _FOLLOW


class RecentDelay:
    """The longest delay of late, in milliseconds; it halves in ``HALF_LIFE_S``."""

    __slots__ = ("_delay_ms", "_noted_at")

    HALF_LIFE_S: Final = 1.0

    def __init__(self) -> None:
        self._delay_ms = 0.0
        self._noted_at = 0.0

    def note(self, delay_ms: float, now: float) -> None:
        """Something came so late, at ``now`` in seconds."""
        known_ms = self.compute_ms(now)
        if delay_ms > known_ms:
            self._delay_ms, self._noted_at = delay_ms, now

    def compute_ms(self, now: float) -> float:
        """What is left of it at ``now``."""
        if not self._delay_ms:
            return 0.0
        return float(self._delay_ms * 0.5 ** ((now - self._noted_at) / self.HALF_LIFE_S))
