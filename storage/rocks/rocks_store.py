"""``LogStore`` on RocksDB.

Only this module, ``rocks_opening`` and ``rocks_options`` import rocksdict.

A data folder holds ``rocksdb/``, the ``watermark`` and a ``lock``. The column families, all in raw
mode, are ``log`` (partition, base offset -> batch), ``latest`` (partition, record key -> entry),
``pending`` (partition, producer id, record key -> entry), ``kept`` (partition, key of
``storage.log.trim`` -> value), ``side`` (key -> value) and ``meta`` (format, cluster id,
partitions). Format 1 had neither ``pending`` nor ``kept``; opening such a store upgrades it to
format 2.

rocksdict holds the GIL during every call except ``flush_wal``. Writes are therefore unsynced, and
``sync`` flushes the WAL in a worker thread. rocksdict also keeps RocksDB open while any iterator
lives, so the store tracks its iterators and drops them on ``close``.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocksdict import (
    Checkpoint,
    IngestExternalFileOptions,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from model.ids import GroupId, LogOffset, LogPartition
from storage.folder.store_folder import (
    ROCKSDB_NAME,
    FolderLock,
)
from storage.folder.watermark import Watermark
from storage.log_store import (
    LatestEntry,
    PartitionAppend,
    PartitionRewrite,
    StoreCorrupt,
    StoreError,
    check_append,
    check_rewrite,
    compute_latest_key,
    compute_watermark_violation,
    pack_pending_key,
    read_batch_range,
    scan_offset_group_ids,
    unpack_latest,
    unpack_pending,
)
from storage.rocks.rocks_checkpoint import RocksCheckpoint
from storage.rocks.rocks_cursors import Scan, Seek, compute_store_error, errors_of
from storage.rocks.rocks_damage import check_blobs
from storage.rocks.rocks_load import LoadTarget, RocksLoad
from storage.rocks.rocks_options import (
    FAMILIES,
    make_sst_writer,
)
from storage.rocks.rocks_rewrite import put_rewrite

_PARTITION = struct.Struct(">H")
_OFFSET = struct.Struct(">Q")
_LOG_KEY = struct.Struct(">HQ")
_LOG_START = LogOffset(0)


class RocksLogStore:
    """A ``LogStore`` in a data folder, opened by ``open_store``.

    ``cut_bytes`` is the size of the torn write that ``open_store`` cut off the WAL after a crash.
    """

    cut_bytes = 0

    def __init__(self, folder: Path, db: Rdict, watermark: Watermark, lock: FolderLock) -> None:
        self.partitions = watermark.header.partitions
        self.cluster_id = watermark.header.cluster_id
        self._folder = folder
        self._db = db
        self._watermark = watermark
        self._lock = lock
        self._families = {name: db.get_column_family(name) for name in FAMILIES}
        self._handles = {name: db.get_column_family_handle(name) for name in FAMILIES}
        self._prefixes = tuple(map(_PARTITION.pack, range(self.partitions)))
        self._write_options = WriteOptions()
        self._write_options.no_slowdown = True
        self._cursors: weakref.WeakSet[Scan | Seek] = weakref.WeakSet()
        self._is_closed = False
        try:
            check_blobs(folder / ROCKSDB_NAME, self._families["log"])
            self._ends = [self._read_end(partition) for partition in range(self.partitions)]
            self._synced = (self._ends.copy(), db.latest_sequence_number())
            self._check_watermark()
        except BaseException:
            self._release()
            raise

    def next_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        if not 0 <= partition < self.partitions:
            raise ValueError(f"no log partition {partition}: the store has {self.partitions}")
        return LogOffset(self._ends[partition])

    def write(
        self, appends: Sequence[PartitionAppend], side: Sequence[tuple[bytes, bytes | None]] = ()
    ) -> None:
        """See ``LogStore``."""
        self._check_open()
        batch = WriteBatch(raw_mode=True)
        put, log_family, latest_family = batch.put, self._handles["log"], self._handles["latest"]
        ends: dict[LogPartition, int] = {}
        for append in appends:
            partition, first = append.partition, append.base_offset
            check_append(append, ends.get(partition) or self.next_offset(partition))
            ends[partition] = first + append.records
            prefix = self._prefixes[partition]
            put(prefix + _OFFSET.pack(first), append.batch, log_family)
            for key, packed in append.latest.items():
                if packed is None:
                    batch.delete(prefix + key, latest_family)
                else:
                    put(prefix + key, packed, latest_family)
            if append.pending:
                self._put_pending(batch, append)
        side_family = self._handles["side"]
        for key, value in side:
            if value is None:
                batch.delete(key, side_family)
            else:
                batch.put(key, value, side_family)
        with errors_of(self._folder):
            self._db.write(batch, self._write_options)
        for partition, end in ends.items():
            self._ends[partition] = end

    def _put_pending(self, batch: WriteBatch, append: PartitionAppend) -> None:
        prefix, family = self._prefixes[append.partition], self._handles["pending"]
        for (producer_id, key), packed in append.pending.items():
            pending_key = prefix + pack_pending_key(producer_id, key)
            if packed is None:
                batch.delete(pending_key, family)
            else:
                batch.put(pending_key, packed, family)

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        return LogOffset(self._watermark.offsets[partition])

    def rewrite(self, rewrite: PartitionRewrite) -> None:
        """See ``LogStore``."""
        self._check_open()
        partition = rewrite.partition
        check_rewrite(rewrite, self._watermark.offsets[partition], self._ends[partition])
        batch = WriteBatch(raw_mode=True)
        put_rewrite(batch, self._prefixes[partition], self._handles, rewrite)
        with errors_of(self._folder):
            self._db.write(batch, self._write_options)

    def get_kept(self, partition: LogPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        return list(self._get("kept", [prefix + key for key in keys]))

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition] + key_prefix
        scan = self._scan("kept", prefix, prefix)
        return ((key[_PARTITION.size :], value) for key, value in scan)

    def sync(self) -> None:
        """See ``LogStore``."""
        self._check_open()
        # Read both before the flush: it covers every write that came before these two lines.
        sequence = self._db.latest_sequence_number()
        ends = self._ends.copy()
        with errors_of(self._folder):
            self._db.flush_wal(True)
        self._synced = (ends, sequence)

    def mark_durable(self, offsets: Mapping[LogPartition, LogOffset]) -> None:
        """See ``LogStore``."""
        self._check_open()
        ends, sequence = self._synced
        for partition, offset in offsets.items():
            if not self._watermark.offsets[partition] <= offset <= ends[partition]:
                raise ValueError(
                    f"partition {partition} is synced up to {ends[partition]} and marked up to "
                    f"{self._watermark.offsets[partition]}: {offset} is not between them"
                )
        self._watermark.mark(offsets, sequence)

    def sync_watermark(self) -> None:
        """See ``LogStore``. May run in a worker thread."""
        self._check_open()
        self._watermark.sync()

    def begin_checkpoint(self) -> RocksCheckpoint:
        """Begin a checkpoint for ``storage.transfer.backup``; usable in a worker thread."""
        self._check_open()
        create = Checkpoint(self._db).create_checkpoint
        return RocksCheckpoint(self._folder, self._families, create)

    def begin_load(self) -> RocksLoad:
        """Begin a bulk load into a store with an empty log; no other calls until ``end_load``."""
        self._check_open()
        write_options = WriteOptions()
        # A property, but rocksdict's stub declares a method.
        write_options.disable_wal = True  # type: ignore[method-assign, assignment]
        target = LoadTarget(
            self._families,
            self._handles,
            make_batch=lambda: WriteBatch(raw_mode=True),
            write=lambda batch: self._db.write(batch, write_options),
            make_sst=lambda: make_sst_writer("log"),
            ingest=self._ingest,
        )
        return RocksLoad(self._folder, target)

    def _ingest(self, family: str, paths: list[str], is_moved: bool) -> None:
        options = IngestExternalFileOptions()
        options.set_move_files(is_moved)
        self._families[family].ingest_external_file(paths, options)

    def end_load(self, load: RocksLoad) -> None:
        """Make the loaded data durable and advance the watermark to its end."""
        load.finish()
        ends = {partition: LogOffset(end) for partition, end in load.ends.items()}
        for partition, end in ends.items():
            self._ends[partition] = end
        self.sync()
        self.mark_durable(ends)
        self.sync_watermark()

    def read_log(self, partition: LogPartition, start: LogOffset = _LOG_START) -> Iterator[bytes]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        first = prefix + _OFFSET.pack(start)
        key = self._seek("log").find_at_or_before(first)
        if key is not None and key.startswith(prefix):
            batch = self._get("log", key)
            if batch is not None and sum(read_batch_range(batch)) > start:
                first = key
        return (batch for _, batch in self._scan("log", first, prefix))

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition] + key_prefix
        scan = self._scan("latest", prefix, prefix)
        return (unpack_latest(key[_PARTITION.size :], packed) for key, packed in scan)

    def get_latest(self, partition: LogPartition, key: bytes) -> LatestEntry | None:
        """See ``LogStore``."""
        packed = self._get("latest", self._prefixes[partition] + compute_latest_key(key))
        return None if packed is None else unpack_latest(compute_latest_key(key), packed)

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        canonical = [compute_latest_key(key) for key in keys]
        values = self._get("latest", [prefix + key for key in canonical])
        return [
            None if packed is None else unpack_latest(key, packed)
            for key, packed in zip(canonical, values, strict=True)
        ]

    def pending(
        self, partition: LogPartition, producer_id: int | None = None
    ) -> Iterator[tuple[int, LatestEntry]]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        if producer_id is not None:
            prefix += pack_pending_key(producer_id, b"")
        scan = self._scan("pending", prefix, prefix)
        return (unpack_pending(key[_PARTITION.size :], packed) for key, packed in scan)

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        cursor = self._seek("latest")

        def seek(key: bytes) -> bytes | None:
            found = cursor.find_at_or_after(prefix + key)
            if found is None or not found.startswith(prefix):
                return None
            return found[_PARTITION.size :]

        return scan_offset_group_ids(seek)

    def side(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        return self._scan("side", prefix, prefix)

    def close(self) -> None:
        """See ``LogStore``."""
        if self._is_closed:
            return
        try:
            self.sync()
        finally:
            self._release()

    def _release(self) -> None:
        self._is_closed = True
        for cursor in list(self._cursors):
            cursor.drop()
        for family in self._families.values():
            family.close()
        self._families.clear()
        self._handles.clear()
        self._db.close()
        self._watermark.close()
        self._lock.release()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self._folder} is closed")

    def _get(self, family: str, key: Any) -> Any:
        self._check_open()
        try:
            return self._families[family].get(key)
        except Exception as error:
            raise compute_store_error(self._folder, error) from error

    def _scan(self, family: str, start: bytes, prefix: bytes) -> Scan:
        self._check_open()
        with errors_of(self._folder):
            iterator = self._families[family].iter()
            iterator.seek(start)
        about = family if family == "side" else f"{family} of log partition {_read_number(prefix)}"
        scan = Scan(self._folder, iterator, prefix, about)
        self._cursors.add(scan)
        return scan

    def _seek(self, family: str) -> Seek:
        self._check_open()
        seek = Seek(self._folder, self._families[family].iter())
        self._cursors.add(seek)
        return seek

    def _read_end(self, partition: int) -> int:
        """Read the log end offset of a partition.

        Raises ``StoreCorrupt`` for a gap above the watermark: in a crash the disk may have kept a
        later write and lost an earlier one.
        """
        prefix = self._prefixes[partition]
        key = self._seek("log").find_at_or_before(prefix + b"\xff" * _OFFSET.size)
        if key is None or not key.startswith(prefix):
            return 0
        end = self._read_batch_end(key)
        marked = self._watermark.offsets[partition]
        if end > marked:
            expected = marked
            for batch in self.read_log(LogPartition(partition), LogOffset(marked)):
                base_offset, count = read_batch_range(batch)
                if base_offset > expected:
                    raise self._compute_damage(partition, f"no batch at offset {expected}")
                expected = base_offset + count
        return end

    def _read_batch_end(self, key: bytes) -> int:
        partition, base_offset = _LOG_KEY.unpack(key)
        batch_base, count = read_batch_range(self._get("log", key))
        if batch_base != base_offset or count < 1:
            raise self._compute_damage(partition, f"a wrong batch at offset {base_offset}")
        return batch_base + count

    def _compute_damage(self, partition: int, what: str) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self._folder} is damaged, restore the data folder from a backup: log partition "
            f"{partition} has {what}"
        )

    def _check_watermark(self) -> None:
        ends, sequence = self._synced
        marked = self._watermark
        violation = compute_watermark_violation(ends, marked.offsets, (sequence, marked.sequence))
        if violation is not None:
            raise violation


def _read_number(key: bytes) -> int:
    """Read the partition at the start of a key."""
    number: int = _PARTITION.unpack_from(key)[0]
    return number
