"""Counts the bytes of batches that each log partition keeps after its history start.

Batches are counted as they are written. Batches of earlier processes are measured once: the store
keeps the measured size for the next start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from model.ids import LogPartition
from storage.log.trim import Measure, pack_measure, read_measure
from storage.log_store import LogStore, PartitionAppend, PartitionRewrite, read_batch_range


class LogSizes:
    """The sizes of all partitions."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._partitions = [LogPartition(number) for number in range(store.partitions)]
        self._found_ends = [store.next_offset(partition) for partition in self._partitions]
        self._bytes = [0] * store.partitions
        self._unsaved: set[LogPartition] = set()
        self.total = 0

    def measure(self) -> Iterator[int]:
        """Add up the batches of earlier processes; yields the bytes read."""
        for partition in self._partitions:
            yield 1
            end = self._found_ends[partition]
            measure = read_measure(self._store, partition)
            self._add(partition, measure.size)
            if measure.end >= end:
                continue
            for batch in self._store.read_log(partition, measure.end):
                if read_batch_range(batch)[0] >= end:
                    break
                self._add(partition, len(batch))
                yield len(batch)

    def note(self, appends: Sequence[PartitionAppend]) -> None:
        """Count written batches."""
        for append in appends:
            self._add(append.partition, len(append.batch))

    def _add(self, partition: LogPartition, size: int) -> None:
        self._bytes[partition] += size
        self.total += size
        self._unsaved.add(partition)

    def note_trimmed(self, partition: LogPartition, size: int) -> None:
        """Subtract ``size`` trimmed bytes, after the result of ``pack_trimmed`` was written."""
        self._bytes[partition] -= size
        self.total -= size
        self._unsaved.discard(partition)

    def pack_trimmed(self, partition: LogPartition, size: int) -> Mapping[bytes, bytes | None]:
        """The size that the store must record once ``size`` bytes of the partition are trimmed."""
        measure = Measure(self._store.next_offset(partition), self._bytes[partition] - size)
        return pack_measure(measure)

    def find_filled(self) -> Iterator[LogPartition]:
        """The partitions that have batches."""
        return (partition for partition in self._partitions if self._bytes[partition])

    def save(self) -> None:
        """Write the sizes that the store does not have yet."""
        for partition in sorted(self._unsaved):
            kept = self.pack_trimmed(partition, 0)
            self._store.rewrite(PartitionRewrite(partition, (), (), kept))
        self._unsaved.clear()
