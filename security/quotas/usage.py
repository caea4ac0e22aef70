"""How much of a quota was used (as Kafka's ``TokenBucket``)."""

from __future__ import annotations


class Usage:
    """What was used, as the seconds in which the quota allows it.

    Whoever was silent may use ``burst_s`` at once; from then on a second in a second. Beyond it the
    user is throttled, and what it uses in spite of that is remembered for as long again.
    """

    __slots__ = ("__weakref__", "_at", "_burst_s", "_used_s")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._used_s = 0.0
        self._at = 0.0

    def record(self, now: float, seconds: float) -> None:
        """Note what was used at ``now``."""
        self._used_s = min(self._compute_used_s(now) + seconds, 2 * self._burst_s + seconds)
        self._at = now

    def compute_over_s(self, now: float, more_s: float = 0.0) -> float:
        """For how long nothing may be used before ``more_s`` may; 0 if it may be now."""
        return max(0.0, self._compute_used_s(now) + more_s - self._burst_s)

    def is_idle(self, now: float) -> bool:
        """Whether it is as good as new."""
        return self._compute_used_s(now) <= 0

    def _compute_used_s(self, now: float) -> float:
        return max(0.0, self._used_s - (now - self._at))
