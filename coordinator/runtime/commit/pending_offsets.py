"""Applies transactions to ``pending`` and ``latest`` while a partition's batches are encoded.

The rule is that of ``storage.log.fold``, applied to the store and the records not written yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model.ids import LogPartition, ProducerId
from storage.log_store import LogStore, PartitionAppend, pack_latest, unpack_latest


class PendingOffsets:
    """The open transactions of one partition: the store's, plus changes not written yet.

    It reads from the store only what it needs, and never writes.
    """

    __slots__ = ("_changes", "_partition", "_store")

    def __init__(self, store: LogStore, partition: LogPartition) -> None:
        self._store = store
        self._partition = partition
        self._changes: dict[int, dict[bytes, bytes | None]] = {}
        """Pending offsets by producer and record key; ``None`` for one that no longer is
        pending."""

    def put(self, producer_id: ProducerId, key: bytes, packed: bytes) -> None:
        """Add a pending offset."""
        self._changes.setdefault(producer_id, {})[key] = packed

    def end(self, producer_id: ProducerId) -> dict[bytes, bytes]:
        """End the producer's transaction; returns its pending offsets, packed, by record key."""
        found: dict[bytes, bytes | None] = {
            entry.key: pack_latest(entry.offset, entry.timestamp, entry.value)
            for _, entry in self._store.pending(self._partition, producer_id)
        }
        found.update(self._changes.get(producer_id, {}))
        self._changes[producer_id] = dict.fromkeys(found)
        return {key: packed for key, packed in found.items() if packed is not None}

    def drop(self, producer_id: ProducerId, key: bytes) -> None:
        """Remove a pending offset whose key gets a tombstone."""
        self._changes.setdefault(producer_id, {})[key] = None


def compute_committed(
    store: LogStore,
    partition: LogPartition,
    appends: Sequence[PartitionAppend],
    waited: Mapping[bytes, bytes],
) -> dict[bytes, bytes]:
    """The pending offsets that become the latest of their keys when they are committed.

    An offset older in the log than its key's current one does not; that one is in ``appends``,
    which are not written yet, or else in the store.
    """
    standing: dict[bytes, bytes | None] = {}
    for append in appends:
        standing.update({key: append.latest[key] for key in waited.keys() & append.latest.keys()})
    unseen = [key for key in waited if key not in standing]
    offsets = {
        key: None if entry is None else entry.offset
        for key, entry in zip(unseen, store.get_many_latest(partition, unseen), strict=True)
    }
    for key, packed in standing.items():
        offsets[key] = None if packed is None else unpack_latest(key, packed).offset
    committed = {}
    for key, packed in waited.items():
        other = offsets[key]
        if other is None or other < unpack_latest(key, packed).offset:
            committed[key] = packed
    return committed
