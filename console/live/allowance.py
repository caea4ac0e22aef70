"""A share of the event loop's time, of which some can be saved."""

from __future__ import annotations


class Allowance:
    """Work that was idle for a while may then take more at once, and rests only when that is spent.

    Times are in seconds, of any clock.
    """

    __slots__ = ("_at_s", "_left_s", "_most_s", "_share")

    def __init__(self, share: float, most_s: float, now_s: float) -> None:
        """``most_s`` of work are saved at most, and at first."""
        self._share = share
        self._most_s = self._left_s = most_s
        self._at_s = now_s

    def spend(self, worked_s: float, now_s: float) -> float:
        """Note some work that is done; how long to rest after it."""
        saved_s = self._left_s + (now_s - self._at_s) * self._share
        self._left_s = min(saved_s, self._most_s) - worked_s
        self._at_s = now_s
        return max(0.0, -self._left_s / self._share)
