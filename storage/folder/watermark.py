"""The watermark: a file beside the store that says how far the log has been acknowledged.

RocksDB may lose the tail of its write-ahead log to a crash, which is right where that tail was
never acknowledged and a disaster where it was; nothing within the store can tell the two apart.
So the next durable offset of each partition, and RocksDB's sequence number for what is not in
the log, are kept outside: written after the fsync of the log and before the answers, so that they
may lag behind the log and never lead it.

The file is a header (format, cluster id, number of partitions), a sector of its own that is written
again only where a newer version takes the store over, and two slots. Each slot is one sector of 512
bytes up to 61 partitions, more sectors beyond, and has a counter and a CRC-32C; the valid slot with
the higher counter counts. A slot of many sectors can be torn by a power cut, therefore only one
slot is written between two fsyncs of the file: the other one holds what the last fsync made
durable.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import crc32c

from model.ids import LogOffset, LogPartition
from storage.log_store import FormatTooNew, StoreCorrupt, StoreFailed

FORMAT_VERSION = 2
SECTOR_SIZE = 512

_MAGIC = b"MUSTERWM"
_HEADER = struct.Struct(">8sII22s")
_SLOT_HEAD = struct.Struct(">QQ")
_OFFSET = struct.Struct(">Q")
_CRC = struct.Struct(">I")
_CLUSTER_ID_LENGTH = 22


@dataclass(frozen=True, slots=True)
class WatermarkHeader:
    """What a store was made as; ``cluster_id`` has 22 ASCII characters."""

    partitions: int
    cluster_id: str
    format_version: int = FORMAT_VERSION


class _Slot(NamedTuple):
    counter: int
    sequence: int
    offsets: tuple[int, ...]


class Watermark:
    """An open watermark file. ``mark`` and ``sync`` may run in different threads.

    ``sequence`` is the store's sequence number and ``offsets`` the next offset of each partition
    that were durable at the last mark. Methods raise ``StoreFailed`` where the disk fails.
    """

    def __init__(self, file: int, header: WatermarkHeader, slots: Sequence[_Slot | None]) -> None:
        best = max((slot for slot in slots if slot), key=lambda slot: slot.counter)
        self.header = header
        self.sequence = best.sequence
        self.offsets = list(best.offsets)
        self._file = file
        self._lock = threading.Lock()
        self._counter = best.counter
        self._slot = 1 - slots.index(best)
        self._buffer = bytearray(_compute_slot_size(header.partitions))
        for partition, offset in enumerate(best.offsets):
            self._put_offset(partition, offset)
        self._is_dirty = False
        self._is_syncing = False

    @property
    def is_pristine(self) -> bool:
        """Whether nothing was ever marked: the store beside it was not finished."""
        return self._counter == 0

    def mark(self, offsets: Mapping[LogPartition, LogOffset], sequence: int) -> None:
        """Writes what is durable now, without an fsync: a few microseconds."""
        with self._lock:
            for partition, offset in offsets.items():
                self.offsets[partition] = offset
                self._put_offset(partition, offset)
            self.sequence = sequence
            if self._is_syncing:
                self._is_dirty = True
            else:
                self._write_slot()

    def raise_format(self) -> None:
        """Says, durably, that this version has written to the store."""
        if self.header.format_version == FORMAT_VERSION:
            return
        header = replace(self.header, format_version=FORMAT_VERSION)
        with _disk_errors("write"):
            os.pwrite(self._file, _encode_header(header), 0)
            os.fdatasync(self._file)
        self.header = header

    def sync(self) -> None:
        """Makes the last mark durable. Marks wait in memory meanwhile: see the module's text."""
        with self._lock:
            self._is_syncing = True
        with _disk_errors("fsync"):
            os.fdatasync(self._file)
        with self._lock:
            self._is_syncing = False
            self._slot = 1 - self._slot
            if self._is_dirty:
                self._is_dirty = False
                self._write_slot()

    def close(self) -> None:
        """Makes the last mark durable and closes the file; a second time does nothing."""
        if self._file < 0:
            return
        try:
            self.sync()
        finally:
            os.close(self._file)
            self._file = -1

    def _put_offset(self, partition: int, offset: int) -> None:
        _OFFSET.pack_into(self._buffer, _SLOT_HEAD.size + _OFFSET.size * partition, offset)

    def _write_slot(self) -> None:
        self._counter += 1
        buffer, end = self._buffer, _compute_crc_start(self.header.partitions)
        _SLOT_HEAD.pack_into(buffer, 0, self._counter, self.sequence)
        _CRC.pack_into(buffer, end, crc32c.crc32c(memoryview(buffer)[:end]))
        try:
            os.pwrite(self._file, buffer, SECTOR_SIZE + self._slot * len(buffer))
        except OSError as error:
            raise _compute_failure("write", error) from error


def create_watermark(path: Path, header: WatermarkHeader) -> Watermark:
    """Makes the file, whole and durable or not at all, with nothing marked."""
    empty = _SLOT_HEAD.pack(0, 0) + bytes(_OFFSET.size * header.partitions)
    slot_size = _compute_slot_size(header.partitions)
    content = _encode_header(header)
    content += (empty + _CRC.pack(crc32c.crc32c(empty))).ljust(slot_size, b"\0")
    content += bytes(slot_size)
    with _disk_errors("write"):
        temporary = path.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)
    return open_watermark(path)


def open_watermark(path: Path) -> Watermark:
    """Opens the file; raises ``StoreCorrupt`` where neither slot is whole, ``FormatTooNew``."""
    with _disk_errors("open"):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        header = _read_header(path, file)
        slots = [_read_slot(file, header.partitions, index) for index in (0, 1)]
        if slots == [None, None]:
            raise StoreCorrupt(f"{path} is damaged: neither of its slots is whole")
        with _disk_errors("fsync"):
            os.fdatasync(file)
        return Watermark(file, header, slots)
    except BaseException:
        os.close(file)
        raise


def read_watermark_header(path: Path) -> WatermarkHeader:
    """What the store beside the file was made as; nothing is written."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise StoreCorrupt(f"{path} is missing: restore the data folder from a backup") from None
    except OSError as error:
        raise _compute_failure("open", error) from error
    try:
        return _read_header(path, file)
    finally:
        os.close(file)


def read_watermark_offsets(path: Path) -> tuple[int, ...]:
    """Up to where each partition was acknowledged at the last mark; nothing is written.

    Raises ``StoreCorrupt`` as ``open_watermark`` does.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _compute_failure("open", error) from error
    try:
        partitions = _read_header(path, file).partitions
        slots = [_read_slot(file, partitions, index) for index in (0, 1)]
    finally:
        os.close(file)
    whole = [slot for slot in slots if slot is not None]
    if not whole:
        raise StoreCorrupt(f"{path} is damaged: neither of its slots is whole")
    return max(whole, key=lambda slot: slot.counter).offsets


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _disk_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _compute_failure(what, error) from error


def _compute_failure(what: str, error: OSError) -> StoreFailed:
    return StoreFailed(f"{what} of the watermark failed: {error}")


def _compute_crc_start(partitions: int) -> int:
    return _SLOT_HEAD.size + _OFFSET.size * partitions


def _compute_slot_size(partitions: int) -> int:
    used = _compute_crc_start(partitions) + _CRC.size
    return -(-used // SECTOR_SIZE) * SECTOR_SIZE


def _encode_header(header: WatermarkHeader) -> bytes:
    cluster_id = header.cluster_id.encode("ascii")
    if len(cluster_id) != _CLUSTER_ID_LENGTH:
        raise ValueError(f"cluster id {header.cluster_id!r} has not {_CLUSTER_ID_LENGTH} letters")
    content = _HEADER.pack(_MAGIC, header.format_version, header.partitions, cluster_id)
    return (content + _CRC.pack(crc32c.crc32c(content))).ljust(SECTOR_SIZE, b"\0")


def _read_header(path: Path, file: int) -> WatermarkHeader:
    with _disk_errors("read"):
        content = os.pread(file, SECTOR_SIZE, 0)
    if len(content) < SECTOR_SIZE or content[: len(_MAGIC)] != _MAGIC:
        raise StoreCorrupt(f"{path} is not the watermark of a store")
    _, version, partitions, cluster_id = _HEADER.unpack_from(content)
    if version > FORMAT_VERSION:
        raise FormatTooNew(
            f"{path.parent} has format {version}, this version reads up to {FORMAT_VERSION}: "
            "use a newer version"
        )
    if _CRC.unpack_from(content, _HEADER.size) != (crc32c.crc32c(content[: _HEADER.size]),):
        raise StoreCorrupt(f"{path} is damaged: its header has a wrong checksum")
    return WatermarkHeader(partitions, cluster_id.decode("ascii"), version)


def _read_slot(file: int, partitions: int, index: int) -> _Slot | None:
    size, end = _compute_slot_size(partitions), _compute_crc_start(partitions)
    with _disk_errors("read"):
        content = os.pread(file, size, SECTOR_SIZE + index * size)
    if len(content) < size or _CRC.unpack_from(content, end) != (crc32c.crc32c(content[:end]),):
        return None
    counter, sequence = _SLOT_HEAD.unpack_from(content)
    return _Slot(counter, sequence, struct.unpack_from(f">{partitions}Q", content, _SLOT_HEAD.size))
