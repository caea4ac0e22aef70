"""One partition of a store in plain lists, which a test may damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from model.ids import LogOffset, LogPartition
from storage.log_store import LatestEntry, LogStore, StoreCorrupt, read_batch_range

Entry = tuple[LogOffset, bytes]


@dataclass
class PlainStore:
    """A store of one partition, as what ``storage.verify.stores`` looks at."""

    number: LogPartition
    partitions: int
    log: list[Entry]
    entries: list[LatestEntry]
    waiting: list[tuple[int, LatestEntry]]
    notes: dict[bytes, bytes]
    sides: list[tuple[bytes, bytes]]
    durable: int
    error: StoreCorrupt | None = field(default=None)

    def copy(self) -> PlainStore:
        return PlainStore(
            self.number,
            self.partitions,
            list(self.log),
            list(self.entries),
            list(self.waiting),
            dict(self.notes),
            list(self.sides),
            self.durable,
        )

    def log_entries(self, partition: LogPartition) -> Iterator[Entry]:
        return iter(sorted(self.log, key=lambda entry: entry[0]))

    def latest(self, partition: LogPartition) -> Iterator[LatestEntry]:
        return iter(sorted(self.entries))

    def pending(self, partition: LogPartition) -> Iterator[tuple[int, LatestEntry]]:
        return iter(sorted(self.waiting))

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterable[tuple[bytes, bytes]]:
        return [pair for pair in sorted(self.notes.items()) if pair[0].startswith(key_prefix)]

    def side(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(self.sides))

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        return LogOffset(self.durable)


def read_plain(store: LogStore, number: int) -> PlainStore:
    """One partition of a store."""
    partition = LogPartition(number)
    batches = list(store.read_log(partition))
    return PlainStore(
        partition,
        store.partitions,
        [(LogOffset(read_batch_range(batch)[0]), batch) for batch in batches],
        list(store.latest(partition)),
        list(store.pending(partition)),
        dict(store.kept(partition)),
        list(store.side()),
        store.durable_offset(partition),
    )
