"""Which members are to be looked at when: by buckets of 100 ms, and to the millisecond within.

When a bucket begins, nearly all of its members have been heard from since and go to later ones.
What is left falls within the bucket.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from coordinator.core.deadlines.member_liveness import MemberLiveness

BUCKET_MS = 100


class _Near(NamedTuple):
    """A deadline of a member in a bucket that has begun; no two have the same number."""

    at_ms: int
    number: int
    entry: MemberLiveness
    bucket: int


class _Bucket(list[MemberLiveness]):
    """Members to look at when a bucket begins. Its ``number`` object is shared by all of them."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class DeadlineBuckets:
    """Members by the time of what may have to be done with them, on the clock of ``Stalls``."""

    __slots__ = ("_buckets", "_near", "_order", "_sequence")

    def __init__(self) -> None:
        self._buckets: dict[int, _Bucket] = {}
        self._order: list[int] = []
        self._near: list[_Near] = []
        """What falls in buckets that have begun, by time."""
        self._sequence = 0

    def put(self, entry: MemberLiveness, deadline_ms: int) -> int:
        """Look at the member when the bucket of this time begins. The number of the bucket."""
        number = deadline_ms // BUCKET_MS
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = _Bucket(number)
            heapq.heappush(self._order, number)
        bucket.append(entry)
        return bucket.number

    def put_near(self, entry: MemberLiveness, bucket: int, at_ms: int) -> None:
        """Look at the member then; the bucket has begun."""
        self._sequence += 1
        heapq.heappush(self._near, _Near(at_ms, self._sequence, entry, bucket))

    def next_ms(self) -> int | None:
        """When to look; ``None`` where there is nothing to look at."""
        soonest_ms = self._order[0] * BUCKET_MS if self._order else None
        if self._near and (soonest_ms is None or self._near[0].at_ms < soonest_ms):
            return self._near[0].at_ms
        return soonest_ms

    def take(self, most: int, now_ms: int) -> tuple[int, list[MemberLiveness]] | None:
        """So many members of the first bucket, and its number; ``None`` where none has begun."""
        if not self._order or self._order[0] * BUCKET_MS > now_ms:
            return None
        number = self._order[0]
        entries = self._buckets[number]
        taken = entries[-most:]
        del entries[-most:]
        if not entries:
            heapq.heappop(self._order)
            del self._buckets[number]
        return number, taken

    def take_near(self, now_ms: int) -> tuple[int, MemberLiveness] | None:
        """The first member in a bucket that has begun, and its number; ``None`` if none is due."""
        if not self._near or self._near[0].at_ms > now_ms:
            return None
        near = heapq.heappop(self._near)
        return near.bucket, near.entry
