"""A histogram of durations with buckets of a bounded relative width, as HdrHistogram has them.

Values below 128 have a bucket each. Above, every power of two is divided into 128 buckets, so a
bucket is narrower than 1/128 of its values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

_SUB_BITS: Final = 7
_SUB_BUCKETS: Final = 1 << _SUB_BITS
_BUCKETS: Final = (64 - _SUB_BITS) << _SUB_BITS
RELATIVE_ERROR: Final = 1 / _SUB_BUCKETS
"""A quantile is at least the exact one, and above it by less than this part of it."""


class Histogram:
    """Counts of integers from 0 to 2**63 - 1; negative ones count as 0."""

    __slots__ = ("_buckets", "count", "highest")

    def __init__(self) -> None:
        self._buckets = [0] * _BUCKETS
        self.count = 0
        self.highest = 0

    def add(self, value: int, times: int = 1) -> None:
        """Count a value."""
        if value < _SUB_BUCKETS:
            index = value if value > 0 else 0
        else:
            shift = value.bit_length() - 1 - _SUB_BITS
            index = (shift << _SUB_BITS) + (value >> shift)
        self._buckets[index] += times
        self.count += times
        if value > self.highest:
            self.highest = value

    def merge(self, other: Histogram) -> None:
        """Count all values of another histogram."""
        if not other.count:
            return
        self._buckets = [a + b for a, b in zip(self._buckets, other._buckets, strict=True)]
        self.count += other.count
        self.highest = max(self.highest, other.highest)

    def quantile(self, part: float) -> int | None:
        """The smallest value that at least ``part`` of all values do not exceed.

        ``None`` if nothing was counted. The error is below ``RELATIVE_ERROR``, and upwards.
        """
        if not self.count:
            return None
        rank = max(1, math.ceil(part * self.count))
        for index, count in enumerate(self._buckets):
            rank -= count
            if rank <= 0:
                return min(_compute_top(index), self.highest)
        return self.highest

    def dump(self) -> list[int]:
        """The content as numbers: the highest value, then index and count of each used bucket."""
        used = [self.highest]
        for index, count in enumerate(self._buckets):
            if count:
                used += (index, count)
        return used

    @classmethod
    def load(cls, numbers: Iterable[int]) -> Histogram:
        """The histogram of which ``dump`` made the numbers."""
        made = cls()
        given = iter(numbers)
        made.highest = next(given)
        for index in given:
            count = next(given)
            made._buckets[index] = count
            made.count += count
        return made


def _compute_top(index: int) -> int:
    """The highest value of a bucket."""
    if index < 2 * _SUB_BUCKETS:
        return index
    shift = (index >> _SUB_BITS) - 1
    low = (index & (_SUB_BUCKETS - 1)) + _SUB_BUCKETS
    return ((low + 1) << shift) - 1
