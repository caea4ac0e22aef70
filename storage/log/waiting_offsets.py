"""Offsets of records that are pending in open transactions while their log is trimmed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from storage.codec.batches import Batch
from storage.log_store import read_batch_range


class WaitingOffsets:
    """Offsets of the records pending in open transactions, by producer and by key."""

    __slots__ = ("_by_producer", "_offsets", "_producers")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[bytes, int]] = {}
        self._producers: dict[bytes, set[int]] = {}
        """For each key, the producers that have it pending: a tombstone drops only theirs."""
        self._offsets: set[int] = set()

    def put(self, producer_id: int, key: bytes, offset: int) -> int | None:
        """Add a pending record; returns the offset of the record that it supersedes."""
        entries = self._by_producer.setdefault(producer_id, {})
        before = entries.get(key)
        entries[key] = offset
        self._producers.setdefault(key, set()).add(producer_id)
        self._offsets.add(offset)
        if before is not None:
            self._offsets.discard(before)
        return before

    def get(self, producer_id: int, key: bytes) -> int | None:
        """The offset of the producer's pending record with this key, if there is one."""
        return self._by_producer.get(producer_id, {}).get(key)

    def keys_of(self, producer_id: int) -> Collection[bytes]:
        """The keys of a producer's pending records."""
        return self._by_producer.get(producer_id, {}).keys()

    def drop(self, key: bytes) -> list[tuple[int, int]]:
        """Drop the pending records of a key; returns their producers and offsets."""
        dropped = []
        for producer_id in sorted(self._producers.pop(key, ())):
            entries = self._by_producer[producer_id]
            dropped.append((producer_id, entries.pop(key)))
            if not entries:
                del self._by_producer[producer_id]
        self._offsets.difference_update(offset for _, offset in dropped)
        return dropped

    def end(self, producer_id: int) -> dict[bytes, int]:
        """End a producer's transaction; returns the keys and offsets of its pending records."""
        ended = self._by_producer.pop(producer_id, {})
        for key in ended:
            producers = self._producers[key]
            producers.discard(producer_id)
            if not producers:
                del self._producers[key]
        self._offsets.difference_update(ended.values())
        return ended

    def select(self, old: Iterable[Batch], left: Iterable[bytes]) -> set[int]:
        """The offsets of the pending records in these batches, decoded or encoded."""
        offsets = self._offsets
        found = {record.offset for batch in old for record in batch.records} & offsets
        for data in left:
            base_offset, count = read_batch_range(data)
            if count < len(offsets):
                found.update(offsets.intersection(range(base_offset, base_offset + count)))
            else:
                found.update(o for o in offsets if base_offset <= o < base_offset + count)
        return found
