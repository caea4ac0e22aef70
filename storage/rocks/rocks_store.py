"""``LogStore`` on RocksDB.

Only this module, ``rocks_opening`` and ``rocks_options`` import rocksdict.

A data folder holds ``rocksdb/``, the ``watermark`` and a ``lock``. The column families, all in raw
mode, are ``log`` (partition, base offset -> batch), ``latest`` (partition, record key -> entry),
``pending`` (partition, producer id, record key -> entry), ``kept`` (partition, key of
``storage.log.trim`` -> value), ``side`` (key -> value) and ``meta`` (format, cluster id,
partitions, and how far ``latest`` is true: see ``rocks_latest``), and ``causes`` (key of
``storage.causes_codec`` -> rebalance). Format 1 had neither ``pending`` nor ``kept``, format 2
wrote ``latest`` with each batch, format 3 had no ``causes``; opening such a store upgrades it.

rocksdict holds the GIL during every call except ``flush_wal``. Writes are therefore unsynced, and
``sync`` flushes the WAL in a worker thread.
"""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from rocksdict import Checkpoint, Rdict, WriteBatch, WriteOptions

from model.ids import GroupId, LogOffset, LogPartition
from storage.folder.store_folder import (
    ROCKSDB_NAME,
    FolderLock,
)
from storage.folder.watermark import Watermark
from storage.log_store import (
    Change,
    LatestEntry,
    PartitionAppend,
    PartitionRewrite,
    StoreStalled,
    check_append,
    check_rewrite,
    compute_watermark_violation,
    pack_pending_key,
    read_batch_range,
    unpack_pending,
)
from storage.rocks.rocks_cursors import errors_of
from storage.rocks.rocks_damage import check_blobs
from storage.rocks.rocks_ends import read_end
from storage.rocks.rocks_families import PARTITION, RocksFamilies
from storage.rocks.rocks_latest import (
    CHECKPOINTS_FORMAT,
    POSITIONS_KEY,
    RocksLatest,
    decode_positions,
    put_positions,
    read_format,
)
from storage.rocks.rocks_load import LoadTarget, RocksLoad
from storage.rocks.rocks_options import FAMILIES, ingest_files, make_sst_writer
from storage.rocks.rocks_rewrite import put_changes, put_pending, put_rewrite
from storage.rocks.rocks_snapshot import RocksSnapshot

UNSETTLED_KEYS_MAX: Final = 40_000
"""From so many changed keys on the store writes nothing before a checkpoint has written them.

A server begins its checkpoints much earlier. What reads very many changed keys at once takes a
microsecond for each.
"""
SETTLE_FREE_BYTES: Final = 256 << 20
"""With less free space nothing is written that need not be."""
_SETTLE_KEYS: Final = 10_000
"""Keys per step of a checkpoint that nothing else runs beside."""
_SETTLE_TRIES: Final = 200
_SETTLE_PAUSE_S: Final = 0.01
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
        self._families = RocksFamilies(
            folder,
            {name: db.get_column_family(name) for name in FAMILIES},
            {name: db.get_column_family_handle(name) for name in FAMILIES},
        )
        self._handles = self._families.handles
        self._prefixes = tuple(map(PARTITION.pack, range(self.partitions)))
        self._write_options = WriteOptions()
        self._write_options.no_slowdown = True
        self._is_closed = False
        try:
            check_blobs(folder / ROCKSDB_NAME, self._families.families["log"])
            self._ends = [self._read_end(LogPartition(n)) for n in range(self.partitions)]
            self._synced = (self._ends.copy(), db.latest_sequence_number())
            self._check_watermark()
            self._latest = self._open_latest()
            self._settle_if_there_is_room()
        except BaseException:
            self._release()
            raise

    def next_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        if not 0 <= partition < self.partitions:
            raise ValueError(f"no log partition {partition}: the store has {self.partitions}")
        return LogOffset(self._ends[partition])

    def write(
        self,
        appends: Sequence[PartitionAppend],
        side: Sequence[Change] = (),
        causes: Sequence[Change] = (),
    ) -> None:
        """See ``LogStore``."""
        self._families.check_open()
        latest = self._latest
        if latest.unsettled_keys > UNSETTLED_KEYS_MAX:
            self._make_room()
        batch = _make_batch()
        put, log_family = batch.put, self._handles["log"]
        ends: dict[LogPartition, int] = {}
        for append in appends:
            partition, first = append.partition, append.base_offset
            check_append(append, ends.get(partition) or self.next_offset(partition))
            ends[partition] = first + append.records
            put(self._prefixes[partition] + _OFFSET.pack(first), append.batch, log_family)
            latest.put_append(batch, append)
            if append.pending:
                family = self._handles["pending"]
                put_pending(batch, self._prefixes[partition], family, append.pending)
        put_changes(batch, self._handles["side"], side)
        if causes:
            put_changes(batch, self._handles["causes"], causes)
        self._write(batch)
        for partition, end in ends.items():
            self._ends[partition] = end
        for append in appends:
            latest.note_append(append)

    def _write(self, batch: WriteBatch) -> None:
        with errors_of(self._folder):
            self._db.write(batch, self._write_options)

    def _make_room(self) -> None:
        """Settle what a user has written who makes no checkpoints, as tools do."""
        if self._latest.is_writing:
            raise StoreStalled(f"{self._folder}: a checkpoint has to write some changes first")
        self.settle()

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        return LogOffset(self._watermark.offsets[partition])

    def rewrite(self, rewrite: PartitionRewrite) -> None:
        """See ``LogStore``."""
        self._families.check_open()
        partition = rewrite.partition
        settled = min(self._watermark.offsets[partition], self._latest.positions[partition])
        check_rewrite(rewrite, settled, self._ends[partition])
        batch = _make_batch()
        put_rewrite(batch, self._prefixes[partition], self._handles, rewrite)
        self._write(batch)

    @property
    def unsettled_keys(self) -> int:
        """See ``LogStore``."""
        return self._latest.unsettled_keys

    def checkpoint_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        return LogOffset(self._latest.positions[partition])

    def write_checkpoint(self, keys_max: int) -> Iterator[bool]:
        """See ``LogStore``."""
        self._families.check_open()
        return self._latest.write_checkpoint(self._ends, keys_max, _make_batch, self._write)

    def settle(self) -> None:
        """Make a checkpoint at once. Raises ``StoreStalled`` if RocksDB stalls."""
        tries = 0
        for is_written in self.write_checkpoint(_SETTLE_KEYS):
            tries += not is_written
            if tries > _SETTLE_TRIES:
                raise StoreStalled(f"{self._folder}: RocksDB has stalled writes for now, try again")
            if not is_written:
                time.sleep(_SETTLE_PAUSE_S)

    def get_kept(self, partition: LogPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        return list(self._families.get("kept", [prefix + key for key in keys]))

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition] + key_prefix
        scan = self._families.scan("kept", prefix, prefix)
        return ((key[PARTITION.size :], value) for key, value in scan)

    def sync(self) -> None:
        """See ``LogStore``."""
        self._families.check_open()
        # Read both before the flush: it covers every write that came before these two lines.
        sequence = self._db.latest_sequence_number()
        ends = self._ends.copy()
        with errors_of(self._folder):
            self._db.flush_wal(True)
        self._synced = (ends, sequence)

    def mark_durable(self, offsets: Mapping[LogPartition, LogOffset]) -> None:
        """See ``LogStore``."""
        self._families.check_open()
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
        self._families.check_open()
        self._watermark.sync()

    def begin_snapshot(self) -> RocksSnapshot:
        """Begin a snapshot for ``storage.transfer.backup``; usable in a worker thread."""
        self._families.check_open()
        create = Checkpoint(self._db).create_checkpoint
        return RocksSnapshot(self._folder, self._families.families, create)

    def begin_load(self) -> RocksLoad:
        """Begin a bulk load into a store with an empty log; no other calls until ``end_load``."""
        self._families.check_open()
        write_options = WriteOptions()
        # A property, but rocksdict's stub declares a method.
        write_options.disable_wal = True  # type: ignore[method-assign, assignment]
        target = LoadTarget(
            self._families.families,
            self._handles,
            make_batch=_make_batch,
            write=lambda batch: self._db.write(batch, write_options),
            make_sst=lambda: make_sst_writer("log"),
            ingest=self._ingest,
        )
        return RocksLoad(self._folder, target)

    def _ingest(self, family: str, paths: list[str], is_moved: bool) -> None:
        ingest_files(self._families.families[family], paths, is_moved)

    def end_load(self, load: RocksLoad) -> None:
        """Make the loaded data durable and advance the watermark to its end."""
        load.finish()
        ends = {partition: LogOffset(end) for partition, end in load.ends.items()}
        for partition, end in ends.items():
            self._ends[partition] = end
        self._latest = self._take_over_latest()
        self.sync()
        self.mark_durable(ends)
        self.sync_watermark()

    def read_log(self, partition: LogPartition, start: LogOffset = _LOG_START) -> Iterator[bytes]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        first = prefix + _OFFSET.pack(start)
        key = self._families.seek("log").find_at_or_before(first)
        if key is not None and key.startswith(prefix):
            batch = self._families.get("log", key)
            if batch is not None and sum(read_batch_range(batch)) > start:
                first = key
        return (batch for _, batch in self._families.scan("log", first, prefix))

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        """See ``LogStore``."""
        return self._latest.scan(partition, key_prefix)

    def get_latest(self, partition: LogPartition, key: bytes) -> LatestEntry | None:
        """See ``LogStore``."""
        return self._latest.get_many(partition, (key,))[0]

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        """See ``LogStore``."""
        return self._latest.get_many(partition, keys)

    def has_latest(self, partition: LogPartition, key_prefix: bytes) -> bool:
        """See ``LogStore``."""
        return self._latest.has_any(partition, key_prefix)

    def pending(
        self, partition: LogPartition, producer_id: int | None = None
    ) -> Iterator[tuple[int, LatestEntry]]:
        """See ``LogStore``."""
        prefix = self._prefixes[partition]
        if producer_id is not None:
            prefix += pack_pending_key(producer_id, b"")
        scan = self._families.scan("pending", prefix, prefix)
        return (unpack_pending(key[PARTITION.size :], packed) for key, packed in scan)

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        """See ``LogStore``."""
        return self._latest.offset_group_ids(partition)

    def side(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        return self._families.scan("side", prefix, prefix)

    def causes(self, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        return self._families.scan("causes", start, b"")

    def causes_before(self, end: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        return self._families.scan_back("causes", end, prefix)

    def close(self) -> None:
        """See ``LogStore``."""
        if self._is_closed:
            return
        try:
            self.sync()
            self._settle_if_there_is_room()
            self.sync()
        finally:
            self._release()

    def _settle_if_there_is_room(self) -> None:
        """Write what was replayed before groups are loaded, or what the next start would replay.

        Not on a disk that is nearly full: the log has it, and a write that fails leaves RocksDB
        unusable.
        """
        if shutil.disk_usage(self._folder).free >= SETTLE_FREE_BYTES:
            with suppress(StoreStalled):
                self.settle()

    def _release(self) -> None:
        self._is_closed = True
        # Each of them, whatever another raises: a lock that is left refuses the next start.
        with ExitStack() as steps:
            steps.callback(self._lock.release)
            steps.callback(self._watermark.close)
            steps.enter_context(errors_of(self._folder))
            steps.callback(self._db.close)
            steps.callback(self._families.release)

    def _open_latest(self) -> RocksLatest:
        """Open ``latest``, and replay what the log has after the last checkpoint."""
        if read_format(self._families) < CHECKPOINTS_FORMAT:
            return self._take_over_latest()
        packed = self._families.get("meta", POSITIONS_KEY)
        positions = decode_positions(self._folder, packed, self.partitions)
        latest = RocksLatest(self._families, positions)
        for partition, (position, end) in enumerate(zip(positions, self._ends, strict=True)):
            if position != end:
                number = LogPartition(partition)
                latest.replay(number, end, self.read_log(number, LogOffset(position)))
        return latest

    def _take_over_latest(self) -> RocksLatest:
        """Note that the family is true up to the log end: an older version or a load wrote it."""
        batch = _make_batch()
        put_positions(batch, self._families, self._ends)
        self._write(batch)
        return RocksLatest(self._families, self._ends)

    def _read_end(self, partition: LogPartition) -> int:
        marked = LogOffset(self._watermark.offsets[partition])
        return read_end(self._families, partition, marked, lambda: self.read_log(partition, marked))

    def _check_watermark(self) -> None:
        ends, sequence = self._synced
        marked = self._watermark
        violation = compute_watermark_violation(ends, marked.offsets, (sequence, marked.sequence))
        if violation is not None:
            raise violation


def _make_batch() -> WriteBatch:
    return WriteBatch(raw_mode=True)
