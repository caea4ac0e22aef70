"""Appending of arbitrary batches to a store, with their changes to ``latest`` and ``pending``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from model.ids import LogOffset, LogPartition
from storage.log.fold import PartitionFold
from storage.log_store import (
    LatestEntry,
    LogStore,
    PartitionAppend,
    pack_latest,
    read_batch_range,
)


class RawLog:
    """Appends any batches to a store, also with offset gaps; ``folds`` holds the folded logs."""

    def __init__(self, store: LogStore) -> None:
        self.store = store
        self.folds: dict[int, PartitionFold] = {}

    def append(self, partition: int, batches: Iterable[bytes]) -> None:
        """Append batches, one write per batch."""
        fold = self.folds.setdefault(partition, PartitionFold())
        for batch in batches:
            latest, pending = dict(fold.latest), _flatten(fold)
            fold.apply(batch)
            base_offset, count = read_batch_range(batch)
            append = PartitionAppend(
                LogPartition(partition),
                LogOffset(base_offset),
                batch,
                count,
                {key: _pack(fold.latest.get(key)) for key in _changed(latest, fold.latest)},
                {
                    place: _pack(found.get(place))
                    for found in (_flatten(fold),)
                    for place in _changed(pending, found)
                },
                may_leave_gap=True,
            )
            self.store.write([append])

    def make_durable(self) -> None:
        """Make a checkpoint, sync the store and advance the watermark to the log end."""
        assert all(self.store.write_checkpoint(1_000))
        self.store.sync()
        numbers = map(LogPartition, range(self.store.partitions))
        self.store.mark_durable({number: self.store.next_offset(number) for number in numbers})
        self.store.sync_watermark()


Place = tuple[int, bytes]


def _flatten(fold: PartitionFold) -> dict[Place, LatestEntry]:
    return {
        (producer_id, key): entry
        for producer_id, entries in fold.pending.items()
        for key, entry in entries.items()
    }


def _changed(before: dict[Any, LatestEntry], after: dict[Any, LatestEntry]) -> list[Any]:
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


def _pack(entry: LatestEntry | None) -> bytes | None:
    return None if entry is None else pack_latest(entry.offset, entry.timestamp, entry.value)
