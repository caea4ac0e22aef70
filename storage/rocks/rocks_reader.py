"""Read-only access to a store, even while a server writes to it or when it is damaged.

A reader sees the log as of the time it was opened. It takes no lock, recovers nothing and does not
check the log against the watermark: it is for tools and for data recovery.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from model.ids import LogOffset, LogPartition
from storage.folder.store_folder import ROCKSDB_NAME, WATERMARK_NAME
from storage.folder.unfinished import make_folder
from storage.folder.watermark import WatermarkHeader, read_watermark_header, read_watermark_offsets
from storage.log.latest_overlay import LatestOverlay, merge_latest
from storage.log_store import (
    LatestEntry,
    StoreCorrupt,
    StoreError,
    read_batch_range,
    unpack_latest,
    unpack_pending,
)
from storage.rocks.rocks_cursors import errors_of
from storage.rocks.rocks_latest import (
    CHECKPOINTS_FORMAT,
    FORMAT_KEY,
    POSITIONS_KEY,
    decode_positions,
    replay_from,
)
from storage.rocks.rocks_opening import open_rocksdb_for_reading

_PARTITION = struct.Struct(">H")
_LOG_KEY = struct.Struct(">HQ")
_LOG_START = LogOffset(0)
_FAMILIES = ("log", "latest", "side", "meta", "pending", "kept", "causes")
_FAMILIES_OF_FORMAT_1 = _FAMILIES[:4]
_FAMILIES_OF_FORMAT_2 = _FAMILIES[:6]
_ATTEMPTS = 5
"""A running server may delete a file between its listing and its opening."""

_OWN_FILES = Path("/proc/self/fd")
READER_PREFIX = "muster-reader-"
_WRITTEN_ON_OPENING = {"LOG", "LOCK", "rocksdict-config.json"}


def open_store_reader(folder: Path) -> RocksLogReader:
    """Open a snapshot of the store in a folder; raises ``StoreError`` if it cannot be opened."""
    header = read_watermark_header(folder / WATERMARK_NAME)
    # Read before the log is opened, so that the log contains everything acknowledged by now.
    durable = _read_durable(folder / WATERMARK_NAME)
    path = folder / ROCKSDB_NAME
    if not (path / "CURRENT").exists():
        raise StoreCorrupt(f"{path / 'CURRENT'} is missing: restore the data folder from a backup")
    for attempt in range(_ATTEMPTS):
        try:
            return _open(folder, path, header, durable)
        except StoreCorrupt:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("not reached")


def _read_durable(watermark: Path) -> Sequence[int] | StoreError:
    """Read the watermark offsets; ``durable_offset`` raises the error, as the log needs none."""
    try:
        return read_watermark_offsets(watermark)
    except StoreError as error:
        return error


def _open(
    folder: Path, path: Path, header: WatermarkHeader, durable: Sequence[int] | StoreError
) -> RocksLogReader:
    with ExitStack() as undo, errors_of(folder):
        links = undo.enter_context(make_folder(Path(gettempdir()), READER_PREFIX))
        for entry in path.iterdir():
            if entry.name not in _WRITTEN_ON_OPENING:
                (links / entry.name).symlink_to(_hold(entry.absolute(), undo))
        families = _families_of(header.format_version)
        db = open_rocksdb_for_reading(links, families)
        return RocksLogReader(folder, db, header, durable, families, undo.pop_all())


def _families_of(format_version: int) -> Sequence[str]:
    match format_version:
        case 1:
            return _FAMILIES_OF_FORMAT_1
        case 2 | 3:
            return _FAMILIES_OF_FORMAT_2
        case _:
            return _FAMILIES


def _hold(file: Path, undo: ExitStack) -> Path:
    """A path under which the file can be opened during the lifetime of the reader.

    RocksDB opens table files with the database, but blob files only when they are read. By then a
    running server may have deleted them, so the reader holds them open.
    """
    if file.suffix != ".blob" or not _OWN_FILES.is_dir():
        return file
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    undo.callback(os.close, handle)
    return _OWN_FILES / str(handle)


class RocksLogReader:
    """A read-only store with read methods of ``LogStore``, opened by ``open_store_reader``."""

    def __init__(
        self,
        folder: Path,
        db: Any,
        header: WatermarkHeader,
        durable: Sequence[int] | StoreError,
        families: Sequence[str],
        files: ExitStack,
    ) -> None:
        self.partitions = header.partitions
        self.cluster_id = header.cluster_id
        self._durable = durable
        self._folder = folder
        self._db = db
        self._families = {name: db.get_column_family(name) for name in families}
        self._files = files
        self._overlay = LatestOverlay()
        """What the log has after the last checkpoint, of the partitions in ``_replayed``."""
        self._replayed: set[LogPartition] = set()
        self.before_batch: Callable[[], None] | None = None
        """Called before each batch is read; what it raises ends the reading."""

    def read_log(self, partition: LogPartition, start: LogOffset = _LOG_START) -> Iterator[bytes]:
        """See ``LogStore.read_log``."""
        prefix = _PARTITION.pack(partition)
        for _, batch in self._scan("log", self._find_batch(partition, start), prefix):
            self._check_wanted()
            yield batch

    def read_batch_before(self, partition: LogPartition, offset: LogOffset) -> bytes | None:
        """The last batch that begins before an offset; ``None`` if there is none."""
        self._check_wanted()
        prefix = _PARTITION.pack(partition)
        with errors_of(self._folder):
            cursor = self._families["log"].iter()
            cursor.seek_for_prev(_LOG_KEY.pack(partition, max(0, offset - 1)))
            cursor.status()
            if offset > 0 and cursor.valid() and cursor.key().startswith(prefix):
                return bytes(cursor.value())
        return None

    def log_entries(self, partition: LogPartition) -> Iterator[tuple[LogOffset, bytes]]:
        """Iterate over all batches with the base offsets in their keys, in key order."""
        prefix = _PARTITION.pack(partition)
        for key, batch in self._scan("log", prefix, prefix):
            if len(key) != _LOG_KEY.size:
                raise StoreCorrupt(f"{self._folder}: {key.hex()} is not the key of a batch")
            yield LogOffset(_LOG_KEY.unpack(key)[1]), batch

    @property
    def sequence(self) -> int:
        """RocksDB's write sequence number, to compare with that of the watermark."""
        sequence: int = self._db.latest_sequence_number()
        return sequence

    def next_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore.next_offset``."""
        prefix = _PARTITION.pack(partition)
        with errors_of(self._folder):
            cursor = self._families["log"].iter()
            cursor.seek_for_prev(prefix + b"\xff" * (_LOG_KEY.size - _PARTITION.size))
            cursor.status()
            if not (cursor.valid() and cursor.key().startswith(prefix)):
                return LogOffset(0)
            return LogOffset(sum(read_batch_range(cursor.value())))

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        """The offset up to which the partition was acknowledged when the reader was opened."""
        if isinstance(self._durable, StoreError):
            raise self._durable
        return LogOffset(self._durable[partition])

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore.kept``."""
        prefix = _PARTITION.pack(partition)
        if "kept" in self._families:
            for key, packed in self._scan("kept", prefix + key_prefix, prefix + key_prefix):
                yield key[_PARTITION.size :], packed

    def meta(self) -> dict[bytes, bytes]:
        """The store's metadata: format, cluster id and partition count."""
        return dict(self._scan("meta", b"", b""))

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        """See ``LogStore.latest``."""
        prefix = _PARTITION.pack(partition) + key_prefix
        self._replay(partition)
        entries = self._overlay.find(partition, key_prefix)
        scan = self._scan("latest", prefix, prefix)
        stored = ((key[_PARTITION.size :], packed) for key, packed in scan)
        for key, packed in merge_latest(entries, stored):
            yield unpack_latest(key, packed)

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        """See ``LogStore.get_many_latest``."""
        prefix = _PARTITION.pack(partition)

        def read_stored(keys: Sequence[bytes]) -> list[bytes | None]:
            with errors_of(self._folder):
                return list(self._families["latest"].get([prefix + key for key in keys]))

        self._replay(partition)
        return self._overlay.get_many(partition, keys, read_stored)

    def _replay(self, partition: LogPartition) -> None:
        """Note what the log of a partition has after the last checkpoint, once."""
        if partition in self._replayed:
            return
        meta = self.meta()
        if int(meta.get(FORMAT_KEY, b"0")) >= CHECKPOINTS_FORMAT:
            packed = meta.get(POSITIONS_KEY)
            position = decode_positions(self._folder, packed, self.partitions)[partition]
            end = self.next_offset(partition)
            batches = self.read_log(partition, LogOffset(position))
            for changes in replay_from(self._folder, partition, position, end, batches):
                self._overlay.note(partition, changes)
        self._replayed.add(partition)

    def pending(self, partition: LogPartition) -> Iterator[tuple[int, LatestEntry]]:
        """See ``LogStore.pending``."""
        prefix = _PARTITION.pack(partition)
        if "pending" in self._families:
            for key, packed in self._scan("pending", prefix, prefix):
                yield unpack_pending(key[_PARTITION.size :], packed)

    def get_kept(self, partition: LogPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """See ``LogStore.get_kept``."""
        if "kept" not in self._families:
            return [None] * len(keys)
        prefix = _PARTITION.pack(partition)
        with errors_of(self._folder):
            return list(self._families["kept"].get([prefix + key for key in keys]))

    def side(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all side records, in key order."""
        return self._scan("side", b"", b"")

    def causes(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all rebalances, in key order."""
        return self._scan("causes", b"", b"") if "causes" in self._families else iter(())

    def close(self) -> None:
        """Close the files. Idempotent."""
        for family in self._families.values():
            family.close()
        self._families.clear()
        self._db.close()
        self._files.close()

    def _check_wanted(self) -> None:
        if self.before_batch is not None:
            self.before_batch()

    def _find_batch(self, partition: LogPartition, start: int) -> bytes:
        first = _LOG_KEY.pack(partition, start)
        with errors_of(self._folder):
            cursor = self._families["log"].iter()
            cursor.seek_for_prev(first)
            cursor.status()
            if cursor.valid() and cursor.key()[: _PARTITION.size] == first[: _PARTITION.size]:
                base_offset, count = read_batch_range(cursor.value())
                if base_offset + count > start:
                    return _LOG_KEY.pack(partition, base_offset)
        return first

    def _scan(self, family: str, start: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        with errors_of(self._folder):
            cursor = self._families[family].iter()
            cursor.seek(start)
            while cursor.valid() and cursor.key().startswith(prefix):
                yield cursor.key(), cursor.value()
                cursor.next()
            cursor.status()
