"""How many bytes the segments of all partitions take, and which were written to longest ago."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from gateway.topics.topic_catalogue import PartitionKey

SegmentKey = tuple[PartitionKey, int]
"""A partition and the base offset of a segment of it."""


class SegmentLedger:
    """Sizes of segments, in the order of the last write to each."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[SegmentKey, int] = OrderedDict()
        self._bases: dict[PartitionKey, set[int]] = {}
        self.total = 0

    def __contains__(self, key: SegmentKey) -> bool:
        return key in self._sizes

    def add(self, key: SegmentKey, size: int) -> None:
        """Bytes were written to a segment, which is now the newest of all."""
        self._sizes[key] = self._sizes.get(key, 0) + size
        self._sizes.move_to_end(key)
        self._bases.setdefault(key[0], set()).add(key[1])
        self.total += size

    def remove(self, key: SegmentKey) -> None:
        """The segment is gone."""
        if key not in self._sizes:
            return
        self.total -= self._sizes.pop(key)
        bases = self._bases[key[0]]
        bases.discard(key[1])
        if not bases:
            del self._bases[key[0]]

    def remove_partition(self, key: PartitionKey) -> None:
        """All segments of a partition are gone."""
        for base_offset in self._bases.pop(key, ()):
            self.total -= self._sizes.pop((key, base_offset))

    def oldest(self, is_kept: Callable[[SegmentKey], bool]) -> SegmentKey | None:
        """The segment that was written to the longest ago, of those that are not kept."""
        return next((key for key in self._sizes if not is_kept(key)), None)

    def partitions(self) -> list[PartitionKey]:
        """The partitions that have segments."""
        return list(self._bases)
