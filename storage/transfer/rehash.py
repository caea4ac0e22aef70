"""Appending an imported log to a store that already holds groups.

The partition counts may differ: each record goes to the partition that its group hashes to in the
store, in the order of the imported partition. A batch with several groups may be split. The marker
of a transaction is written to every partition that the transaction wrote to.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from model.ids import GroupId, LogOffset, LogPartition, compute_log_partition
from storage.codec.batch_encoding import encode_marker, reencode_batch
from storage.codec.batches import (
    Batch,
    BatchRecord,
    compute_max_timestamp,
    decode_batch,
    decode_marker,
)
from storage.columnar.batch_columns import read_batch_columns
from storage.columnar.block_fold import BlockFold, Changes
from storage.columnar.record_columns import read_record_columns
from storage.log.compression import decompress
from storage.log.waiting_offsets import WaitingOffsets
from storage.log_store import (
    LogStore,
    PartitionAppend,
    PartitionRewrite,
    StoreStalled,
    compute_latest_key,
    read_batch_range,
)
from storage.transfer.import_refused import ImportRefused
from storage.transfer.imported import UNKNOWN, Imported, pack_imported
from storage.transfer.partition_placement import find_group_ids, read_group_id

WRITE_BYTES = 1 << 20
"""A partition's batches are folded and written once they reach this size."""

_BASE_OFFSET = struct.Struct(">q")
_COMPRESSION_MASK = 0x07
_STALL_S = 0.01
_OFFSET_TYPE = b"\x00\x01"


class _Target:
    """A partition of the store, with the batches to be written to it."""

    def __init__(self, partition: LogPartition, next_offset: int) -> None:
        self.partition = partition
        self.next_offset = next_offset
        self.folded = BlockFold()
        self.batches: list[bytes] = []
        self.size = 0
        self.producers: set[int] = set()

    def append(self, batch: bytes) -> None:
        """Add a batch at the next offset; the CRC does not cover the base offset."""
        _, count = read_batch_range(batch)
        self.batches.append(_BASE_OFFSET.pack(self.next_offset) + batch[_BASE_OFFSET.size :])
        self.next_offset += count
        self.size += len(batch)


class _Transaction:
    """An open transaction: the partitions that it wrote to, and the fields of its marker."""

    def __init__(self) -> None:
        self.targets: set[LogPartition] = set()
        self.producer_epoch = 0
        self.last_ms = 0


class _Clashes:
    """Finds the groups of the imported log that already exist in the store, by folding the log.

    Groups of which only aborted offsets or deleted records are left do not clash.
    """

    def __init__(self) -> None:
        self._live: set[bytes] = set()
        self._waiting = WaitingOffsets()

    def note(self, batch: Batch, key: bytes, offset: int, value: bytes | None) -> None:
        """Apply a record of a group that exists in the store."""
        key = compute_latest_key(key)
        if value is None:
            self._live.discard(key)
            self._waiting.drop(key)
        elif batch.is_transactional and batch.producer_id >= 0 and key.startswith(_OFFSET_TYPE):
            self._waiting.put(batch.producer_id, key, offset)
        else:
            self._live.add(key)

    def end(self, producer_id: int, *, committed: bool) -> None:
        """Apply a transaction marker of the producer."""
        ended = self._waiting.end(producer_id)
        if committed:
            self._live.update(ended)

    def end_all(self) -> None:
        """Drop open transactions at the end of an imported partition: they abort, or fail it."""
        self._waiting = WaitingOffsets()

    def find_groups(self) -> set[GroupId]:
        """The groups that have live records in the imported log."""
        groups = map(read_group_id, self._live)
        return {group for group in groups if group is not None}


class Rehash:
    """Appends imported partitions, one after another; the only writer of the store."""

    def __init__(self, store: LogStore, *, aborts_open: bool) -> None:
        self._store = store
        self._aborts_open = aborts_open
        self._source = LogPartition(0)
        self._targets = [
            _Target(LogPartition(p), store.next_offset(LogPartition(p)))
            for p in range(store.partitions)
        ]
        self._open: dict[int, _Transaction] = {}
        self._groups: frozenset[GroupId] = frozenset().union(
            *(find_group_ids(store, LogPartition(p)) for p in range(store.partitions))
        )
        self._clashes = _Clashes()

    def apply(self, source: LogPartition, batches: Sequence[bytes]) -> None:
        """Append batches of an imported partition, in log order; raises ``CodecError``."""
        self._source = source
        for data in batches:
            batch = decode_batch(data, decompress=decompress)
            if batch.is_control:
                self._apply_control(data, batch)
            elif batch.records:
                self._apply_records(data, batch)
        for target in self._targets:
            if target.size >= WRITE_BYTES:
                self._write(target)

    def end_partition(self) -> list[int]:
        """End the imported partition; returns the producers whose open transactions it aborted.

        Raises ``ImportRefused`` if transactions are open and ``aborts_open`` is false.
        """
        aborted = sorted(self._open)
        self._clashes.end_all()
        if aborted and not self._aborts_open:
            raise ImportRefused(
                f"partition {self._source} has {len(aborted)} open transactions (producer id "
                f"{aborted[0]}{' and others' if len(aborted) > 1 else ''}), which cannot continue "
                "in a store that holds groups: end them in Kafka, or use --abort-open"
            )
        for producer_id in aborted:
            transaction = self._open[producer_id]
            marker = encode_marker(
                0,
                transaction.last_ms,
                producer_id=producer_id,
                producer_epoch=transaction.producer_epoch,
                committed=False,
                coordinator_epoch=0,
            )
            self._end_transaction(producer_id, marker)
        return aborted

    def finish(self) -> None:
        """Write the rest and make it durable.

        Raises ``ImportRefused`` if groups or producers clash; the store must then be discarded.
        """
        clashes = sorted(self._clashes.find_groups())
        if clashes:
            more = f" and {len(clashes) - 3} more" if len(clashes) > 3 else ""
            # Kafka allows an empty group id.
            shown = ", ".join(group or "''" for group in clashes[:3])
            raise ImportRefused(
                f"groups exist both in the store and in the imported log: {shown}{more}; "
                "delete them in one of the two"
            )
        for target in self._targets:
            self._write(target)
            for producer_id, _ in self._store.pending(target.partition):
                if producer_id in target.producers:
                    raise ImportRefused(
                        f"producer id {producer_id} has an open transaction in partition "
                        f"{target.partition} of the store, and also occurs in the imported log"
                    )
        self._store.sync()
        self._store.mark_durable(
            {target.partition: LogOffset(target.next_offset) for target in self._targets}
        )
        for target in self._targets:
            imported = Imported(LogOffset(target.next_offset), UNKNOWN)
            kept = pack_imported(imported)
            self._store.rewrite(PartitionRewrite(target.partition, (), (), kept))
        self._store.sync()

    def _apply_records(self, data: bytes, batch: Batch) -> None:
        parts = self._split(batch)
        for partition, records in parts.items():
            target = self._targets[partition]
            if len(records) == len(batch.records):
                target.append(data)
            else:
                target.append(_rebuild(batch, records))
            if batch.is_transactional:
                transaction = self._open.setdefault(batch.producer_id, _Transaction())
                transaction.targets.add(partition)
                transaction.producer_epoch = batch.producer_epoch
                transaction.last_ms = batch.max_timestamp

    def _split(self, batch: Batch) -> Mapping[LogPartition, list[BatchRecord]]:
        parts: dict[LogPartition, list[BatchRecord]] = {}
        for record in batch.records:
            key = record.key or b""
            group = read_group_id(key)
            if group is None:
                partition = LogPartition(self._source % len(self._targets))
            elif group in self._groups:
                self._clashes.note(batch, key, record.offset, record.value)
                continue
            else:
                partition = compute_log_partition(group, len(self._targets))
            parts.setdefault(partition, []).append(record)
        return parts

    def _apply_control(self, data: bytes, batch: Batch) -> None:
        for marker in map(decode_marker, batch.records):
            if marker is not None:
                self._clashes.end(batch.producer_id, committed=marker.committed)
                self._end_transaction(batch.producer_id, data)

    def _end_transaction(self, producer_id: int, marker: bytes) -> None:
        transaction = self._open.pop(producer_id, None)
        if transaction is not None:
            for partition in sorted(transaction.targets):
                self._targets[partition].append(marker)
                self._targets[partition].producers.add(producer_id)

    def _write(self, target: _Target) -> None:
        """Write a partition's batches in one write; the last append carries all their changes."""
        if not target.batches:
            return
        block = read_batch_columns(target.batches)
        before = target.folded.pending()
        changes = target.folded.apply(block, read_record_columns(block, decompress))
        after = target.folded.pending()
        pending = dict.fromkeys(before.keys() - after.keys()) | after
        last = len(target.batches) - 1
        nothing: Changes = {}
        self._write_patiently(
            [
                PartitionAppend(
                    target.partition,
                    LogOffset(int(base_offset)),
                    batch,
                    read_batch_range(batch)[1],
                    changes if index == last else nothing,
                    pending if index == last else {},
                )
                for index, (base_offset, batch) in enumerate(
                    zip(block.base_offsets, target.batches, strict=True)
                )
            ]
        )
        target.batches, target.size = [], 0

    def _write_patiently(self, appends: Sequence[PartitionAppend]) -> None:
        while True:
            try:
                self._store.write(appends)
                return
            except StoreStalled:
                time.sleep(_STALL_S)


def _rebuild(batch: Batch, records: Sequence[BatchRecord]) -> bytes:
    """Encode some records of a batch as an uncompressed batch, at consecutive offsets from 0."""
    attributes = batch.attributes & ~_COMPRESSION_MASK
    moved = tuple(record._replace(offset=index) for index, record in enumerate(records))
    return reencode_batch(
        replace(
            batch,
            base_offset=0,
            last_offset=len(records) - 1,
            attributes=attributes,
            max_timestamp=compute_max_timestamp(batch, records),
            count=len(records),
            records=moved,
        )
    )
