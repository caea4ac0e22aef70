"""How many bytes the segments of all partitions take, and which were written to longest ago."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from gateway.topics.topic_catalogue import PartitionKey

SegmentKey = tuple[PartitionKey, int]
"""A partition and the base offset of a segment of it."""


class _Partition(NamedTuple):
    """What all segments of a partition share: one key, not one of each request that wrote."""

    key: PartitionKey
    bases: set[int]


class SegmentLedger:
    """Sizes of segments, in the order of the last write to each."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[SegmentKey, int] = OrderedDict()
        self._partitions: dict[PartitionKey, _Partition] = {}
        self.total = 0

    def __contains__(self, key: SegmentKey) -> bool:
        return key in self._sizes

    def add(self, key: SegmentKey, size: int) -> None:
        """Bytes were written to a segment, which is now the newest of all."""
        if key not in self._sizes:
            partition = self._partitions.setdefault(key[0], _Partition(key[0], set()))
            partition.bases.add(key[1])
            key = (partition.key, key[1])
        self._sizes[key] = self._sizes.get(key, 0) + size
        self._sizes.move_to_end(key)
        self.total += size

    def remove(self, key: SegmentKey) -> None:
        """The segment is gone."""
        if key not in self._sizes:
            return
        self.total -= self._sizes.pop(key)
        bases = self._partitions[key[0]].bases
        bases.discard(key[1])
        if not bases:
            del self._partitions[key[0]]

    def remove_partition(self, key: PartitionKey) -> None:
        """All segments of a partition are gone."""
        partition = self._partitions.pop(key, None)
        for base_offset in partition.bases if partition is not None else ():
            self.total -= self._sizes.pop((key, base_offset))

    def oldest(self, is_kept: Callable[[SegmentKey], bool]) -> SegmentKey | None:
        """The segment that was written to the longest ago, of those that are not kept."""
        return next((key for key in self._sizes if not is_kept(key)), None)

    def partitions(self) -> list[PartitionKey]:
        """The partitions that have segments."""
        return list(self._partitions)
