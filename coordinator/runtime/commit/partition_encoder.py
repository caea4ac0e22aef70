"""Encodes the records of one log partition into batches, and their effect on ``latest``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

from coordinator.core.state.conversion import RecordBlock, weigh_record
from coordinator.core.state.steps import Steps, take_slices
from coordinator.runtime.commit.pending_offsets import PendingOffsets, compute_committed
from coordinator.runtime.ledger.noted_changes import NotedChange, WrittenChange
from model.ids import LogOffset, LogPartition, ProducerId
from model.log.commit_records import OffsetColumns
from model.log.records import Record
from model.log.transaction_records import TransactionalOffsets, TransactionMarker, TransactionRecord
from storage.codec.batch_encoding import encode_batch, encode_marker, encode_records, frame_records
from storage.codec.batches import HEADER_SIZE
from storage.codec.commit_encoder import CommitEncoder
from storage.codec.record_codec import encode_key, encode_value
from storage.log.latest_rows import LatestRows
from storage.log_store import LogStore, PartitionAppend, pack_latest

BATCH_BYTES_MAX = 1 << 20
RECORDS_BYTES_MAX = BATCH_BYTES_MAX - HEADER_SIZE
BLOCK_SLICE = 200
"""Records encoded per iteration, each in some 5 µs."""
RECORD_OVERHEAD_MAX = 21
"""The most that a record takes besides key and value: lengths, deltas, attributes, header count."""

LONE_ROWS_MIN = 16
"""From this many rows on, encoding a commit as a matrix is faster."""


def encode_lone_commit(
    log_partition: LogPartition,
    first: LogOffset,
    wall_ms: int,
    offsets: OffsetColumns,
    commit_timestamp: int,
    encoder: CommitEncoder,
) -> PartitionAppend | None:
    """The append of a lone commit, as ``PartitionEncoder`` makes it, in a third of the time.

    ``None`` if the commit needs a ``PartitionEncoder``.
    """
    partitions = offsets.partitions
    count = len(partitions)
    if count == 1:
        batch, value = encoder.encode_batch(first, wall_ms, offsets, commit_timestamp)
        latest = {encoder.encode_key(partitions[0]): pack_latest(first, wall_ms, value)}
        return PartitionAppend(log_partition, first, batch, 1, latest)
    if not fits_rows(offsets, encoder):
        return None
    return _encode_rows(log_partition, first, wall_ms, offsets, commit_timestamp, encoder)


def _encode_rows(
    log_partition: LogPartition,
    first: LogOffset,
    wall_ms: int,
    offsets: OffsetColumns,
    commit_timestamp: int,
    encoder: CommitEncoder,
) -> PartitionAppend:
    """The append of a commit of many partitions, in a batch of its own."""
    batch, values = encoder.encode_rows(first, wall_ms, offsets, commit_timestamp)
    keys = offsets.keys or encoder.encode_keys(offsets.partitions)
    rows = LatestRows(keys, first, wall_ms, values)
    # Only what is repeated is replaced before anybody packs it.
    latest = rows if offsets.keys else rows.entries
    return PartitionAppend(log_partition, first, batch, len(rows), latest)


def fits_rows(offsets: OffsetColumns, encoder: CommitEncoder) -> bool:
    """Whether a commit is encoded as a matrix."""
    count = len(offsets.partitions)
    return count >= LONE_ROWS_MIN and count * encoder.size <= RECORDS_BYTES_MAX


def make_blocks(records: Sequence[Record]) -> Steps[tuple[RecordBlock, ...]]:
    """Encode very many records, none of them a commit, into batches, in slices."""
    blocks: list[RecordBlock] = []
    pairs: list[tuple[bytes, bytes | None]] = []
    parts: list[bytes] = []
    size = 0
    for part in take_slices(records, BLOCK_SLICE, weigh_record):
        begin = len(pairs)
        for record in part:
            key = encode_key(record.key)
            value = None if record.value is None else encode_value(record.value)
            added = len(key) + len(value or b"") + RECORD_OVERHEAD_MAX
            if pairs and size + added > RECORDS_BYTES_MAX:
                parts.append(encode_records(pairs[begin:], begin))
                blocks.append(RecordBlock(pairs, b"".join(parts)))
                pairs, parts, size, begin = [], [], 0, 0
            pairs.append((key, value))
            size += added
        parts.append(encode_records(pairs[begin:], begin))
        yield
    blocks.append(RecordBlock(pairs, b"".join(parts)))
    return tuple(blocks)


class PartitionEncoder:
    """Encodes records in order. A batch is at most 1 MiB, unless one record alone is larger.

    Plain records share batches; each transactional write and each marker has a batch of its own.
    The ``store`` is read for pending offsets, and only if a marker ends them.
    """

    __slots__ = (
        "_appends",
        "_changed_from",
        "_first",
        "_latest",
        "_offset",
        "_pairs",
        "_partition",
        "_pending",
        "_pending_deletes",
        "_size",
        "_store",
        "_wall_ms",
        "changes",
    )

    def __init__(
        self, partition: LogPartition, first: LogOffset, wall_ms: int, store: LogStore
    ) -> None:
        self._partition = partition
        self._store = store
        self._pending: PendingOffsets | None = None
        self._pending_deletes: dict[tuple[int, bytes], bytes | None] = {}
        self._first: int = first
        self._offset: int = first
        self._wall_ms = wall_ms
        self._size = 0
        self._pairs: list[tuple[bytes, bytes | None]] = []
        self._latest: dict[bytes, bytes | None] = {}
        self._appends: list[PartitionAppend] = []
        self._changed_from: int = first
        self.changes: tuple[WrittenChange, ...] = ()

    def begin_change(self) -> None:
        """What follows is a change of offsets, in batches of its own."""
        if self._pairs:
            self._cut()
        self._changed_from = self._offset

    def end_change(self, change: NotedChange) -> None:
        """The change is complete."""
        if self._pairs:
            self._cut()
        first, last = LogOffset(self._changed_from), LogOffset(self._offset - 1)
        self.changes = (*self.changes, WrittenChange(change, first, last))

    def add_record(self, record: Record, waited: Collection[ProducerId] = ()) -> None:
        """Add a record; a tombstone also removes pending offsets of the ``waited`` producers."""
        value = None if record.value is None else encode_value(record.value)
        self.add_encoded(encode_key(record.key), value, waited)

    def add_encoded(
        self, key: bytes, value: bytes | None, waited: Collection[ProducerId] = ()
    ) -> None:
        """``add_record`` for an encoded key and value."""
        if value is None:
            self._make_room(len(key) + RECORD_OVERHEAD_MAX)
            self._pairs.append((key, None))
            # The core writes no legacy keys, so the record key is the key in ``latest``.
            self._latest[key] = None
            self._offset += 1
            for producer_id in waited:
                self._open_pending().drop(producer_id, key)
                self._pending_deletes[producer_id, key] = None
        else:
            self._add(key, value)

    def add_block(self, block: RecordBlock) -> None:
        """Add encoded records, none of them a commit, as a batch of their own."""
        if self._pairs:
            self._cut()
        first, wall_ms = self._first, self._wall_ms
        latest = {
            key: None if value is None else pack_latest(offset, wall_ms, value)
            for offset, (key, value) in enumerate(block.pairs, first)
        }
        count = len(block.pairs)
        self._offset += count
        self._append(frame_records(first, block.body, count, wall_ms), count, latest, {})

    def add_rows(
        self, offsets: OffsetColumns, commit_timestamp: int, encoder: CommitEncoder
    ) -> None:
        """Add a commit that ``fits_rows``, as a batch of its own."""
        if self._pairs:
            self._cut()
        first = LogOffset(self._first)
        append = _encode_rows(
            self._partition, first, self._wall_ms, offsets, commit_timestamp, encoder
        )
        self._appends.append(append)
        self._offset += append.records
        self._first = self._offset

    def add_offsets(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Add the records of a commit, which no producer's transaction waits for."""
        for key, value in pairs:
            self._add(key, value)

    def _add(self, key: bytes, value: bytes) -> None:
        added = len(key) + len(value) + RECORD_OVERHEAD_MAX
        size = self._size + added
        if size > RECORDS_BYTES_MAX and self._pairs:
            self._cut()
            size = added
        self._size = size
        self._pairs.append((key, value))
        self._latest[key] = pack_latest(self._offset, self._wall_ms, value)
        self._offset += 1

    def _make_room(self, size: int) -> None:
        if self._size + size > RECORDS_BYTES_MAX and self._pairs:
            self._cut()
        self._size += size

    def _cut(self) -> None:
        batch = encode_batch(self._first, self._pairs, self._wall_ms)
        self._append(batch, len(self._pairs), self._latest, self._pending_deletes)
        self._pairs, self._latest, self._size, self._pending_deletes = [], {}, 0, {}

    def _append(
        self,
        batch: bytes,
        records: int,
        latest: dict[bytes, bytes | None],
        pending: dict[tuple[int, bytes], bytes | None],
    ) -> None:
        first = LogOffset(self._first)
        self._appends.append(
            PartitionAppend(self._partition, first, batch, records, latest, pending)
        )
        self._first = self._offset

    def finish(self) -> list[PartitionAppend]:
        """The appends to write, in offset order."""
        if self._pairs:
            self._cut()
        return self._appends

    # --------------------------------------------------------------------------- transactions

    def add_transaction(self, record: TransactionRecord) -> None:
        """Add pending offsets, or the marker that ends them."""
        if self._pairs:
            self._cut()
        match record:
            case TransactionalOffsets():
                self._add_transactional_offsets(record)
            case TransactionMarker():
                self._add_marker(record)
            case _:
                assert_never(record)

    def _open_pending(self) -> PendingOffsets:
        if self._pending is None:
            self._pending = PendingOffsets(self._store, self._partition)
        return self._pending

    def _add_transactional_offsets(self, offsets: TransactionalOffsets) -> None:
        pairs: list[tuple[bytes, bytes | None]] = []
        size = 0
        for record in offsets.records:
            assert record.value is not None, "a transaction writes no tombstones"
            key, value = encode_key(record.key), encode_value(record.value)
            added = len(key) + len(value) + RECORD_OVERHEAD_MAX
            if pairs and size + added > RECORDS_BYTES_MAX:
                self._append_transactional(offsets, pairs)
                pairs, size = [], 0
            pairs.append((key, value))
            size += added
        self._append_transactional(offsets, pairs)

    def _append_transactional(
        self, offsets: TransactionalOffsets, pairs: list[tuple[bytes, bytes | None]]
    ) -> None:
        pending: dict[tuple[int, bytes], bytes | None] = {}
        producer_id, put = offsets.producer_id, self._open_pending().put
        for offset, (key, value) in enumerate(pairs, self._offset):
            assert value is not None
            pending[producer_id, key] = packed = pack_latest(offset, self._wall_ms, value)
            put(producer_id, key, packed)
        self._offset += len(pairs)
        batch = encode_batch(
            self._first,
            pairs,
            self._wall_ms,
            producer_id=offsets.producer_id,
            producer_epoch=offsets.producer_epoch,
            is_transactional=True,
        )
        self._append(batch, len(pairs), {}, pending)

    def _add_marker(self, marker: TransactionMarker) -> None:
        waited = self._open_pending().end(marker.producer_id)
        latest: dict[bytes, bytes | None] = {}
        if marker.committed:
            latest.update(compute_committed(self._store, self._partition, self._appends, waited))
        batch = encode_marker(
            self._offset,
            self._wall_ms,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            committed=marker.committed,
            coordinator_epoch=marker.coordinator_epoch,
        )
        self._offset += 1
        self._append(batch, 1, latest, {(marker.producer_id, key): None for key in waited})
