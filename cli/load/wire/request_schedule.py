"""When requests are to be sent: the intended times of a held rate, or at once without one."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

_NS: Final = 1_000_000_000


def compute_intended_ns(number: int, rate: float, ramp_ns: int) -> int:
    """When request ``number`` (from 0) is intended, in ns since the start.

    The rate rises evenly from 0 to ``rate`` per second within ``ramp_ns``, and then stays.
    """
    ramp_s = ramp_ns / _NS
    in_ramp = rate * ramp_s / 2
    if number < in_ramp:
        return int(math.sqrt(2 * number * ramp_s / rate) * _NS)
    return ramp_ns + int((number - in_ramp) / rate * _NS)


class RequestSchedule:
    """Gives out the requests of a process, each with its intended time.

    With a rate of 0 a request is intended when somebody can send it. Nothing is given out before
    ``start`` or after ``stop``. All times are ns of ``time.monotonic_ns``.
    """

    __slots__ = ("_end_ns", "_next_ns", "_number", "_ramp_ns", "_rate", "_start_ns", "is_held")

    def __init__(self, rate: float, ramp_ns: int) -> None:
        self._rate = rate
        self._ramp_ns = ramp_ns
        self._number = 0
        self._start_ns = 0
        self._end_ns = 0
        self._next_ns = 0
        self.is_held = rate > 0

    @property
    def next_ns(self) -> int:
        """When the next request is intended."""
        return self._next_ns

    def start(self, start_ns: int, end_ns: int) -> None:
        """Give out requests that are intended from ``start_ns`` on and before ``end_ns``."""
        self._start_ns = self._next_ns = start_ns
        self._end_ns = end_ns

    def stop(self, now_ns: int) -> None:
        """Give out nothing that is intended later than now."""
        self._end_ns = min(self._end_ns, now_ns)

    def take(self, now_ns: int) -> int | None:
        """The intended time of the next request; ``None`` if none is due."""
        intended_ns = self._next_ns
        if not self.is_held:
            return now_ns if intended_ns <= now_ns < self._end_ns else None
        if intended_ns > now_ns or intended_ns >= self._end_ns:
            return None
        self._number += 1
        self._next_ns = self._start_ns + self._compute(self._number)
        return intended_ns

    def take_all(self, now_ns: int, parts: int) -> Iterator[tuple[int, int]]:
        """All that is due at a held rate: intended times, and how many are intended from then on.

        There are at most about ``parts`` of them, because what is due may be very many.
        """
        due_ns = min(self._end_ns, now_ns + 1) - self._start_ns
        most = self._number + int(self._rate * max(0, due_ns) / _NS) + 2
        first = self._number
        self._number = max(first, bisect_left(range(most), due_ns, key=self._compute))
        step = max(1, (self._number - first) // parts)
        for number in range(first, self._number, step):
            intended_ns = self._start_ns + self._compute(number)
            yield intended_ns, min(step, self._number - number)
        self._next_ns = self._start_ns + self._compute(self._number)

    def _compute(self, number: int) -> int:
        return compute_intended_ns(number, self._rate, self._ramp_ns)

    def is_due(self, now_ns: int) -> bool:
        """Whether ``take`` would give out a request."""
        return self._next_ns <= now_ns and (
            self._next_ns < self._end_ns if self.is_held else now_ns < self._end_ns
        )
