"""A timer of members: buckets of 100 ms, and exact times within a bucket that has begun.

When a bucket begins, nearly all of its members have sent a heartbeat since and move to later
buckets. Only the rest is queued by exact time.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from coordinator.core.deadlines.member_liveness import MemberLiveness

BUCKET_MS = 100


class _Near(NamedTuple):
    """A deadline in a bucket that has begun; the unique ``number`` resolves ties in the heap."""

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
    """Members by the time at which to examine them, on the clock of ``Stalls``."""

    __slots__ = ("_buckets", "_near", "_order", "_sequence")

    def __init__(self) -> None:
        self._buckets: dict[int, _Bucket] = {}
        self._order: list[int] = []
        self._near: list[_Near] = []
        """The deadlines in buckets that have begun, by time."""
        self._sequence = 0

    def put(self, entry: MemberLiveness, deadline_ms: int) -> int:
        """Examine the member when the bucket of this time begins; returns the bucket's number."""
        number = deadline_ms // BUCKET_MS
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = _Bucket(number)
            heapq.heappush(self._order, number)
        bucket.append(entry)
        return bucket.number

    def put_near(self, entry: MemberLiveness, bucket: int, at_ms: int) -> None:
        """Examine the member at exactly this time, in a bucket that has begun."""
        self._sequence += 1
        heapq.heappush(self._near, _Near(at_ms, self._sequence, entry, bucket))

    def next_ms(self) -> int | None:
        """The next time to examine members; ``None`` if there are none."""
        soonest_ms = self._order[0] * BUCKET_MS if self._order else None
        if self._near and (soonest_ms is None or self._near[0].at_ms < soonest_ms):
            return self._near[0].at_ms
        return soonest_ms

    def take(self, most: int, now_ms: int) -> tuple[int, list[MemberLiveness]] | None:
        """At most ``most`` members of the first bucket, and its number; ``None`` if none began."""
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
