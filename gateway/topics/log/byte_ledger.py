"""Tracks the sizes of all segments, in the order of their last write."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from gateway.topics.topic_catalogue import PartitionKey

SegmentKey = tuple[PartitionKey, int]
"""A partition and the base offset of one of its segments."""


class _Partition(NamedTuple):
    """A partition's segments; they share one key object instead of one of each request."""

    key: PartitionKey
    bases: set[int]


class SegmentLedger:
    """The sizes of segments, in the order of the last write to each."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[SegmentKey, int] = OrderedDict()
        self._partitions: dict[PartitionKey, _Partition] = {}
        self.total = 0

    def __contains__(self, key: SegmentKey) -> bool:
        return key in self._sizes

    def add(self, key: SegmentKey, size: int) -> None:
        """Count ``size`` bytes written to a segment, which becomes the most recently written."""
        if key not in self._sizes:
            partition = self._partitions.setdefault(key[0], _Partition(key[0], set()))
            partition.bases.add(key[1])
            key = (partition.key, key[1])
        self._sizes[key] = self._sizes.get(key, 0) + size
        self._sizes.move_to_end(key)
        self.total += size

    def remove(self, key: SegmentKey) -> None:
        """Remove a deleted segment."""
        if key not in self._sizes:
            return
        self.total -= self._sizes.pop(key)
        bases = self._partitions[key[0]].bases
        bases.discard(key[1])
        if not bases:
            del self._partitions[key[0]]

    def remove_partition(self, key: PartitionKey) -> None:
        """Remove all segments of a partition."""
        partition = self._partitions.pop(key, None)
        for base_offset in partition.bases if partition is not None else ():
            self.total -= self._sizes.pop((key, base_offset))

    def oldest(self, is_kept: Callable[[SegmentKey], bool]) -> SegmentKey | None:
        """The least recently written segment for which ``is_kept`` is false."""
        return next((key for key in self._sizes if not is_kept(key)), None)

    def partitions(self) -> list[PartitionKey]:
        """The partitions that have segments."""
        return list(self._partitions)
