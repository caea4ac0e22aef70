"""Trimming: compaction of the old part of a partition's log, in small steps.

The history of a partition begins at its *history start*. Below it, the log keeps only the records
that make up the state at that position, each at its own offset: the last record of every key, and
the pending records of open transactions. Tombstones, markers and aborted offsets are removed, and
committed transactional records are rewritten as non-transactional ones. So for every position from
the history start on, folding the log gives the same state as before the trim.

Each step trims the next batches from the history start on. For each of their records, the step
must find the record that it supersedes: ``kept`` in the store maps the key of every record below
the history start to its offset. A step has three parts (``decode_old``, ``compute_plan``,
``compute_rewrite``): only ``compute_plan`` reads the store, so decoding and encoding may run in
another thread.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from model.ids import LogOffset, LogPartition
from storage.codec.batch_encoding import select_records
from storage.codec.batches import Batch, BatchRecord, decode_batch, decode_marker, read_batch_header
from storage.log.compression import decompress
from storage.log.waiting_offsets import WaitingOffsets
from storage.log_store import (
    LogStore,
    PartitionRewrite,
    StoreCorrupt,
    compute_latest_key,
    read_batch_range,
)

RECORDS_PER_BATCH_MAX = 100
"""Records per rewritten batch. When one of them is superseded, the whole batch is rewritten."""

_START_KEY = b""
_LATEST_TAG = b"\x00"
_PENDING_TAG = b"\x01"
_MEASURE_KEY = b"\x02"
_START = struct.Struct(">qq")
_MEASURE = struct.Struct(">qq")
_OFFSET = struct.Struct(">q")
_PRODUCER_ID = struct.Struct(">q")
_OFFSET_TYPE = b"\x00\x01"


class HistoryStart(NamedTuple):
    """The position from which on a partition's log is complete.

    ``before_ms`` is the highest timestamp (wall-clock ms) of the batches below ``offset``, -1 if
    there are none. The state at that time and at any later time can be read.
    """

    offset: LogOffset
    before_ms: int


class Measure(NamedTuple):
    """``size``: the bytes of a partition's batches from its history start up to ``end``."""

    end: LogOffset
    size: int


NO_HISTORY_START = HistoryStart(LogOffset(0), -1)


def read_history_start(store: LogStore, partition: LogPartition) -> HistoryStart:
    """Read the history start of a partition; offset 0 if it was never trimmed."""
    (packed,) = store.get_kept(partition, [_START_KEY])
    if packed is None:
        return NO_HISTORY_START
    offset, before_ms = _START.unpack(packed)
    return HistoryStart(LogOffset(offset), before_ms)


def read_measure(store: LogStore, partition: LogPartition) -> Measure:
    """Read the stored measure; by default size 0 at the history start."""
    (packed,) = store.get_kept(partition, [_MEASURE_KEY])
    if packed is None:
        return Measure(read_history_start(store, partition).offset, 0)
    end, size = _MEASURE.unpack(packed)
    return Measure(LogOffset(end), size)


def decode_history_start(kept: Mapping[bytes, bytes]) -> HistoryStart:
    """Decode the history start from entries of ``kept``; raises ``struct.error`` if malformed."""
    packed = kept.get(_START_KEY)
    if packed is None:
        return NO_HISTORY_START
    offset, before_ms = _START.unpack(packed)
    return HistoryStart(LogOffset(offset), before_ms)


def is_kept_record(key: bytes) -> bool:
    """Whether a key of ``kept`` refers to a record below the history start."""
    return key[:1] in (_LATEST_TAG, _PENDING_TAG)


def pack_kept_records(
    latest: Mapping[bytes, int], pending: Mapping[tuple[int, bytes], int]
) -> dict[bytes, bytes]:
    """Encode entries of ``kept`` for records, which are given with their offsets."""
    kept = {_LATEST_TAG + key: _OFFSET.pack(offset) for key, offset in latest.items()}
    for (producer_id, key), offset in pending.items():
        kept[_PENDING_TAG + _PRODUCER_ID.pack(producer_id) + key] = _OFFSET.pack(offset)
    return kept


def pack_measure(measure: Measure) -> dict[bytes, bytes | None]:
    """Encode a measure for ``PartitionRewrite.kept``."""
    return {_MEASURE_KEY: _MEASURE.pack(*measure)}


def compute_trim_limit(store: LogStore, partition: LogPartition) -> LogOffset:
    """The offset up to which the log may be trimmed.

    Everything below is durable, in a checkpoint, so that no start replays it, and below the last
    batch.
    """
    end = store.next_offset(partition)
    last = next(store.read_log(partition, LogOffset(end - 1)), None) if end else None
    if last is None:
        return LogOffset(0)
    settled = min(store.durable_offset(partition), store.checkpoint_offset(partition))
    return LogOffset(min(settled, read_batch_range(last)[0]))


def read_old(
    store: LogStore,
    partition: LogPartition,
    limit: int,
    bytes_max: int,
    is_old: Callable[[bytes], bool],
) -> list[bytes]:
    """Read the next batches to trim: those that end below the limit, as long as they are old.

    Reads at most ``bytes_max``, but always at least one batch that qualifies.
    """
    found: list[bytes] = []
    size = 0
    for batch in store.read_log(partition, read_history_start(store, partition).offset):
        size += len(batch)
        is_last = sum(read_batch_range(batch)) > limit
        if is_last or (found and size > bytes_max) or not is_old(batch):
            break
        found.append(batch)
    return found


def decode_old(batches: Iterable[bytes]) -> list[Batch]:
    """Decode the batches of a step; raises ``CodecError`` for a damaged batch."""
    return [decode_batch(batch, decompress=decompress) for batch in batches]


# ---------------------------------------------------------------------------------------- plan


@dataclass(slots=True)
class TrimPlan:
    """The changes of one trim step.

    ``old`` are the batches to trim, ``left`` the batches below the previous history start that the
    step changes, ``start`` the new history start.
    """

    partition: LogPartition
    start: HistoryStart
    old: Sequence[Batch]
    left: Sequence[bytes]
    gone: set[int]
    """Offsets of the records to remove: superseded, aborted, tombstones and markers."""
    waiting: set[int]
    """Offsets of the records of these batches that are pending in open transactions."""
    kept: dict[bytes, bytes | None]


def compute_plan(
    store: LogStore,
    partition: LogPartition,
    old: Sequence[Batch],
    waiting: WaitingOffsets | None = None,
) -> TrimPlan:
    """Fold the old batches onto ``kept``, and read the older batches that lose records by it.

    ``waiting`` holds the pending records of the partition, and is read from the store if not
    given. It is updated in place, so it is valid once the plan is written.
    """
    before = read_history_start(store, partition)
    known = read_waiting(store, partition) if waiting is None else waiting
    fold = _OffsetFold(store, partition, old, known)
    for batch in old:
        fold.apply(batch)
    before_ms = max([before.before_ms, *(batch.max_timestamp for batch in old)])
    start = HistoryStart(LogOffset(old[-1].last_offset + 1), before_ms)
    changed = sorted(offset for offset in fold.gone | fold.settled if offset < before.offset)
    kept = fold.compute_kept()
    kept[_START_KEY] = _START.pack(*start)
    left = list(_read_holders(store, partition, changed))
    return TrimPlan(partition, start, old, left, fold.gone, known.select(old, left), kept)


def read_waiting(store: LogStore, partition: LogPartition) -> WaitingOffsets:
    """Read the pending records below the history start of a partition."""
    waiting = WaitingOffsets()
    for key, packed in store.kept(partition, _PENDING_TAG):
        (producer_id,) = _PRODUCER_ID.unpack_from(key, 1)
        (offset,) = _OFFSET.unpack(packed)
        waiting.put(producer_id, key[1 + _PRODUCER_ID.size :], offset)
    return waiting


def _read_holders(
    store: LogStore, partition: LogPartition, offsets: Sequence[int]
) -> Iterator[bytes]:
    """Read the batches that contain any of the offsets, which must be ascending."""
    end = 0
    for offset in offsets:
        if offset < end:
            continue
        batch = next(store.read_log(partition, LogOffset(offset)), None)
        base_offset, count = (offset + 1, 0) if batch is None else read_batch_range(batch)
        if batch is None or base_offset > offset:
            raise StoreCorrupt(
                f"log partition {partition} has lost the record at offset {offset}: "
                "restore the data folder from a backup"
            )
        yield batch
        end = base_offset + count


class _OffsetFold:
    """``PartitionFold`` on record offsets only, starting from ``kept``."""

    def __init__(
        self,
        store: LogStore,
        partition: LogPartition,
        old: Sequence[Batch],
        waiting: WaitingOffsets,
    ) -> None:
        self._store = store
        self._partition = partition
        self._waiting = waiting
        self.latest: dict[bytes, int | None] = {}
        self.gone: set[int] = set()
        self.settled: set[int] = set()
        """Offsets of records that were pending and are now committed."""
        self._changed_pending: set[tuple[int, bytes]] = set()
        self._read_latest(old)

    def _read_latest(self, old: Sequence[Batch]) -> None:
        keys = {
            compute_latest_key(record.key)
            for batch in old
            if not batch.is_control
            for record in batch.records
            if record.key is not None
        }
        ending = {batch.producer_id for batch in old if batch.is_control}
        keys.update(*(self._waiting.keys_of(producer_id) for producer_id in ending))
        ordered = sorted(keys)
        found = self._store.get_kept(self._partition, [_LATEST_TAG + key for key in ordered])
        for key, packed in zip(ordered, found, strict=True):
            self.latest[key] = None if packed is None else _OFFSET.unpack(packed)[0]

    def apply(self, batch: Batch) -> None:
        """Apply one batch by the rules of ``storage.log.fold``."""
        if batch.is_control:
            for record in batch.records:
                self.gone.add(record.offset)
                marker = decode_marker(record)
                if marker is not None:
                    self._end_transaction(batch.producer_id, committed=marker.committed)
            return
        may_wait = batch.is_transactional and batch.producer_id >= 0
        for record in batch.records:
            if record.key is None:
                self.gone.add(record.offset)
            else:
                self._apply_record(batch.producer_id if may_wait else None, record, record.key)

    def _apply_record(self, producer_id: int | None, record: BatchRecord, key: bytes) -> None:
        key, offset = compute_latest_key(key), record.offset
        if record.value is None:
            self._replace(key, None)
            self._drop_pending(key)
            self.gone.add(offset)
        elif producer_id is not None and key[:2] == _OFFSET_TYPE:
            before = self._waiting.put(producer_id, key, offset)
            if before is not None:
                self.gone.add(before)
            self._changed_pending.add((producer_id, key))
        else:
            self._replace(key, offset)

    def _replace(self, key: bytes, offset: int | None) -> None:
        current = self.latest[key]
        if current is not None:
            self.gone.add(current)
        self.latest[key] = offset

    def _drop_pending(self, key: bytes) -> None:
        for producer_id, offset in self._waiting.drop(key):
            self.gone.add(offset)
            self._changed_pending.add((producer_id, key))

    def _end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for key, offset in self._waiting.end(producer_id).items():
            self._changed_pending.add((producer_id, key))
            current = self.latest[key]
            if committed and (current is None or current < offset):
                self._replace(key, offset)
                self.settled.add(offset)
            else:
                self.gone.add(offset)

    def compute_kept(self) -> dict[bytes, bytes | None]:
        """The changed entries of ``kept``; may include unchanged ones."""
        kept = {
            _LATEST_TAG + key: None if offset is None else _OFFSET.pack(offset)
            for key, offset in self.latest.items()
        }
        for producer_id, key in self._changed_pending:
            waiting = self._waiting.get(producer_id, key)
            packed = None if waiting is None else _OFFSET.pack(waiting)
            kept[_PENDING_TAG + _PRODUCER_ID.pack(producer_id) + key] = packed
        return kept


# ------------------------------------------------------------------------------------- rewrite


@dataclass(slots=True)
class _Changes:
    removed: list[LogOffset] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)


def compute_rewrite(plan: TrimPlan) -> PartitionRewrite:
    """Encode the plan as a rewrite for the store."""
    changes, gone = _Changes(), sorted(plan.gone)
    for data in plan.left:
        header = read_batch_header(data)
        first = bisect_left(gone, header.base_offset)
        if bisect_right(gone, header.last_offset, first) - first == header.count:
            changes.removed.append(LogOffset(header.base_offset))
        else:
            _rewrite_batch(plan, decode_batch(data, decompress=decompress), changes)
    for batch in plan.old:
        _rewrite_batch(plan, batch, changes)
    return PartitionRewrite(plan.partition, changes.removed, changes.batches, plan.kept)


def _rewrite_batch(plan: TrimPlan, batch: Batch, changes: _Changes) -> None:
    left = [record for record in batch.records if record.offset not in plan.gone]
    is_waiting = any(record.offset in plan.waiting for record in left)
    is_whole = bool(left) and len(left) == len(batch.records)
    if is_whole and is_waiting == batch.is_transactional and not batch.compression:
        return
    changes.removed.append(LogOffset(batch.base_offset))
    for first in range(0, len(left), RECORDS_PER_BATCH_MAX):
        cut = left[first : first + RECORDS_PER_BATCH_MAX]
        is_transactional = any(record.offset in plan.waiting for record in cut)
        changes.batches.append(select_records(batch, cut, is_transactional=is_transactional))
