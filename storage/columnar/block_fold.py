"""Block-wise fold of a partition's log: computes the changes that each block makes to ``latest``.

Applies the rules of ``storage.log.fold.PartitionFold``, but holds only open transactions in memory:
a log of any length is folded in the memory of one block, and the caller applies the changes to its
own state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from storage.codec.batches import BatchRecord, decode_marker
from storage.columnar.batch_columns import BatchColumns, Int64Array
from storage.columnar.record_columns import RecordColumns, slice_bytes
from storage.log_store import compute_latest_key, pack_latest

_OFFSET_TYPE = b"\x00\x01"

Changes = dict[bytes, bytes | None]
"""Record keys (``compute_latest_key``) to entries (``pack_latest``); ``None`` deletes."""


class _Waiting(NamedTuple):
    """A pending entry of an open transaction."""

    offset: int
    packed: bytes


class BlockFold:
    """Folds one partition; ``apply`` takes its blocks in log order."""

    __slots__ = (
        "_changes",
        "_keys",
        "_latest_offsets",
        "_open",
        "_records",
        "_waiting",
        "open_producers",
    )

    def __init__(self) -> None:
        self.open_producers: dict[int, int] = {}
        """The producer ids of open transactions, and their epochs."""
        self._open: dict[int, dict[bytes, _Waiting]] = {}
        self._waiting: dict[bytes, set[int]] = {}
        """For each key in ``_open``, the producers that have it."""
        self._latest_offsets: dict[bytes, int] = {}
        """For keys in ``_waiting``: the highest offset that has entered ``latest`` since.

        Compared when a transaction commits. One lookup per key, because very many hanging
        producers may wait with the same key.
        """
        self._changes: dict[bytes, int | bytes] = {}
        """Per key, the index of its last record, or a committed entry of an earlier block."""

    def apply(self, batches: BatchColumns, records: RecordColumns) -> Changes:
        """Compute the changes of a block; raises ``CodecError`` for a malformed marker."""
        self._records = records
        self._keys = compute_latest_keys(records)
        self._changes = {}
        ends = np.cumsum(batches.counts)
        are_control = batches.are_control
        special = np.flatnonzero(batches.are_transactional | are_control)
        done = 0
        for index in special.tolist():
            start, end = int(ends[index] - batches.counts[index]), int(ends[index])
            self._apply_plain(done, start)
            producer_id = int(batches.producer_ids[index])
            if are_control[index]:
                self._apply_control(producer_id, start, end)
            else:
                self.open_producers[producer_id] = int(batches.producer_epochs[index])
                self._apply_one_by_one(range(start, end), producer_id)
            done = end
        self._apply_plain(done, len(self._keys))
        return self._compute_changes()

    def pending(self) -> dict[tuple[int, bytes], bytes]:
        """The packed pending entries of open transactions, by producer id and record key."""
        return {
            (producer_id, key): entry.packed
            for producer_id, entries in self._open.items()
            for key, entry in entries.items()
        }

    def _apply_plain(self, start: int, end: int) -> None:
        if start == end:
            return
        lengths = self._records.key_lengths[start:end]
        indices: Iterable[int] = range(start, end)
        keys = self._keys[start:end]
        if (lengths < 0).any():
            indices = (np.flatnonzero(lengths >= 0) + start).tolist()
            keys = [self._keys[index] for index in indices]
        last = dict(zip(keys, indices, strict=True))
        if self._waiting and not self._waiting.keys().isdisjoint(last):
            self._apply_one_by_one(indices, -1)
        else:
            self._changes.update(last)

    def _apply_one_by_one(self, indices: Iterable[int], producer_id: int) -> None:
        """Apply records individually: some are transactional, or have a key that is pending."""
        records = self._records
        for index in indices:
            key = self._keys[index]
            if records.key_lengths[index] < 0:
                continue
            if records.value_lengths[index] < 0:
                self._changes[key] = index
                self._drop_waiting(key)
            elif producer_id >= 0 and key[:2] == _OFFSET_TYPE:
                self._wait(producer_id, key, index)
            else:
                self._changes[key] = index
                self._note_latest_offset(key, int(records.offsets[index]))

    def _wait(self, producer_id: int, key: bytes, index: int) -> None:
        records = self._records
        start, offset = int(records.value_starts[index]), int(records.offsets[index])
        value = records.data[start : start + int(records.value_lengths[index])]
        entry = _Waiting(offset, pack_latest(offset, int(records.timestamps[index]), value))
        self._open.setdefault(producer_id, {})[key] = entry
        self._waiting.setdefault(key, set()).add(producer_id)

    def _note_latest_offset(self, key: bytes, offset: int) -> None:
        if key in self._waiting:
            self._latest_offsets[key] = max(offset, self._latest_offsets.get(key, offset))

    def _drop_waiting(self, key: bytes) -> None:
        self._latest_offsets.pop(key, None)
        for producer_id in self._waiting.pop(key, ()):
            entries = self._open[producer_id]
            del entries[key]
            if not entries:
                del self._open[producer_id]

    def _apply_control(self, producer_id: int, start: int, end: int) -> None:
        for marker in map(decode_marker, self._read_records(start, end)):
            if marker is not None:
                self.open_producers.pop(producer_id, None)
                self._end_transaction(producer_id, committed=marker.committed)

    def _read_records(self, start: int, end: int) -> Iterator[BatchRecord]:
        records = self._records
        values = slice_bytes(
            records.data, records.value_starts[start:end], records.value_lengths[start:end]
        )
        for index, value in zip(range(start, end), values, strict=True):
            offset, time = int(records.offsets[index]), int(records.timestamps[index])
            key_start, length = int(records.key_starts[index]), int(records.key_lengths[index])
            key = records.data[key_start : key_start + max(0, length)]
            yield BatchRecord(offset, time, key, value)

    def _end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for key, entry in self._open.pop(producer_id, {}).items():
            producers = self._waiting[key]
            producers.discard(producer_id)
            if committed and self._latest_offsets.get(key, entry.offset) <= entry.offset:
                self._changes[key] = entry.packed
                self._note_latest_offset(key, entry.offset)
            if not producers:
                del self._waiting[key]
                self._latest_offsets.pop(key, None)

    def _compute_changes(self) -> Changes:
        changes: Changes = {}
        indices_by_key: dict[bytes, int] = {}
        for key, change in self._changes.items():
            if isinstance(change, int):
                indices_by_key[key] = change
            else:
                changes[key] = change
        indices = np.fromiter(indices_by_key.values(), dtype=np.int64, count=len(indices_by_key))
        changes.update(zip(indices_by_key, pack_records(self._records, indices), strict=True))
        return changes


def pack_records(records: RecordColumns, indices: Int64Array) -> list[bytes | None]:
    """``pack_latest`` for many records; ``None`` for tombstones."""
    heads = np.empty((len(indices), 2), dtype=">i8")
    heads[:, 0] = records.offsets[indices]
    heads[:, 1] = records.timestamps[indices]
    packed = heads.tobytes()
    data = records.data
    starts = records.value_starts[indices].tolist()
    lengths = records.value_lengths[indices].tolist()
    return [
        None if length < 0 else packed[at : at + 16] + data[start : start + length]
        for at, start, length in zip(range(0, len(packed), 16), starts, lengths, strict=True)
    ]


def compute_latest_keys(records: RecordColumns) -> list[bytes]:
    """The ``compute_latest_key`` of every record."""
    keys = records.keys()
    data = np.frombuffer(records.data, dtype=np.uint8)
    legacy = (records.key_lengths >= 2) & (data[records.key_starts] == 0)
    legacy &= data[records.key_starts + 1] == 0
    for index in np.flatnonzero(legacy).tolist():
        keys[index] = compute_latest_key(keys[index])
    return keys
