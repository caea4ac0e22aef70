"""How much of a quota was used (as Kafka's ``TokenBucket``)."""

from __future__ import annotations

from typing import Final

_MOST_S: Final = 1e9
"""What one use counts for at most: the smallest quotas would make it infinite."""


class Usage:
    """What was used, as the seconds in which the quota allows it.

    Whoever was silent may use ``burst_s`` at once; from then on a second in a second. Beyond it the
    user is throttled, and what it uses in spite of that is remembered for as long again. One use
    that is more than all of that may be made by whoever was silent for as long as it takes.
    """

    __slots__ = ("__weakref__", "_at", "_burst_s", "_limit", "_used_s")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._limit: float | None = None
        self._used_s = 0.0
        self._at = 0.0

    def change_limit(self, now: float, limit: float) -> None:
        """Note the quota for a second: what was used of another one stays what it was."""
        if self._limit is not None and limit != self._limit:
            used_s = self._compute_used_s(now) * self._limit / limit
            self._used_s, self._at = min(used_s, 2 * self._burst_s), now
        self._limit = limit

    def record(self, now: float, seconds: float) -> None:
        """Note what was used at ``now``."""
        seconds = min(seconds, _MOST_S)
        self._used_s = min(self._compute_used_s(now) + seconds, 2 * self._burst_s + seconds)
        self._at = now

    def compute_over_s(self, now: float, more_s: float = 0.0) -> float:
        """For how long nothing may be used before ``more_s`` may; 0 if it may be now."""
        more_s = min(more_s, self._burst_s)
        return max(0.0, self._compute_used_s(now) + more_s - self._burst_s)

    def is_idle(self, now: float) -> bool:
        """Whether it is as good as new."""
        return self._compute_used_s(now) <= 0

    def _compute_used_s(self, now: float) -> float:
        return max(0.0, self._used_s - (now - self._at))
