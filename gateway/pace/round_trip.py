"""Estimates a client's round trip from the time between a response and the next heartbeat; pure.

No such time is shorter than a network round trip to the client itself. (The kernel's RTT estimate
may end at a proxy that terminates the TCP connection.) Most are longer: the client waits until the
interval has passed since it sent its last heartbeat (librdkafka, and Java while the interval is
unchanged) or since it received the response (Java when the interval changes). So a heartbeat that
arrives when due bounds the round trip from above, and a late one shows the round trip or a busy
client. Both call for the same: a larger gap before the client gives a response up.
"""

from __future__ import annotations

from typing import Final

FIRST_MAX_MS: Final = 1_000.0
"""A client that takes longer for its second request had no request to send."""
LONGEST_MS: Final = 2_000.0
SLACK_MS: Final = 10.0
"""Up to this late counts as on time: client timers and our event loop are not exact."""
BUSY_MS: Final = 50.0
"""Up to this late may be a busy client; a longer delay may be a longer round trip."""
HELD_MS: Final = 100.0
"""A response parked for this long shows whether the client's timer starts from the response."""
GIVEN_UP_MS: Final = 100.0
"""A client that gave a response up gets at least this much more time."""

_LATE_DECAY: Final = 0.75
_FOLLOW: Final = 0.25
_SINK: Final = 0.5
_RELAX: Final = 1 / 32


class RoundTrip:
    """The round-trip estimate of one connection, in milliseconds; 0 while unknown.

    ``network_ms`` is the network round trip. ``late_ms`` is how much later than that the client
    recently was; it decays with heartbeats that arrive on time. ``least_ms`` is the round trip that
    the first requests showed.
    """

    __slots__ = ("late_ms", "least_ms", "network_ms")

    def __init__(self) -> None:
        self.network_ms = 0.0
        self.late_ms = 0.0
        self.least_ms = 0.0

    @property
    def allowance_ms(self) -> float:
        """The time to allow from the next response to the heartbeat after it."""
        return min(self.network_ms + self.late_ms, LONGEST_MS)

    def begin(self, took_ms: float) -> None:
        """Start from the client's second request, sent when it has the response to its first."""
        self.network_ms = self.least_ms = min(took_ms, FIRST_MAX_MS)

    def inherit(self, older: RoundTrip, has_given_up: bool) -> None:
        """Take over what ``older``, the client's previous connection, has learned.

        What the first requests of this connection showed takes precedence. ``has_given_up``: the
        client left that connection while a heartbeat was parked, so it gets more time.
        """
        self.late_ms = older.late_ms
        if not self.network_ms:
            self.network_ms, self.least_ms = older.network_ms, older.least_ms
        if has_given_up:
            self.late_ms += max(self.allowance_ms, GIVEN_UP_MS)

    def learn(self, took_ms: float, interval_ms: float, held_ms: float) -> None:
        """Learn from a heartbeat that arrived ``took_ms`` after the response to the last one.

        The last one had been held for ``held_ms``; its response carried ``interval_ms``.
        """
        if took_ms - interval_ms > LONGEST_MS:
            return  # The client's process was stopped or had no reason to send.
        if took_ms >= interval_ms - SLACK_MS:
            # The client's timer started from the response, or the heartbeat was long overdue: the
            # time beyond the interval is the round trip.
            way_ms, late_ms = took_ms - interval_ms, took_ms - interval_ms - self.network_ms
            if held_ms >= HELD_MS and way_ms < self.network_ms:
                self.network_ms -= (self.network_ms - max(0.0, way_ms)) * _FOLLOW
        else:
            due_ms = max(0.0, interval_ms - held_ms)
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
    """The longest recent delay, in milliseconds; it halves every ``HALF_LIFE_S``."""

    __slots__ = ("_delay_ms", "_noted_at")

    HALF_LIFE_S: Final = 1.0

    def __init__(self) -> None:
        self._delay_ms = 0.0
        self._noted_at = 0.0

    def note(self, delay_ms: float, now: float) -> None:
        """Note a delay of ``delay_ms``, seen at ``now`` seconds."""
        known_ms = self.compute_ms(now)
        if delay_ms > known_ms:
            self._delay_ms, self._noted_at = delay_ms, now

    def compute_ms(self, now: float) -> float:
        """The decayed delay at ``now``."""
        if not self._delay_ms:
            return 0.0
        return float(self._delay_ms * 0.5 ** ((now - self._noted_at) / self.HALF_LIFE_S))
