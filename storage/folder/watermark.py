"""The watermark: a file beside the store that records how far the log has been acknowledged.

A crash may cost RocksDB the tail of its WAL. That is harmless if the tail was never acknowledged
and data loss if it was, and nothing within the store can tell the two apart. So the durable offset
of each partition, and RocksDB's sequence number, which also covers side records, are stored
outside. They are written after the fsync of the log and before responses are sent, so they may lag
behind the log but never lead it.

The file has a header (format, cluster id, number of partitions) and two slots. The header is one
sector, rewritten only when a newer version upgrades the store. A slot has a counter and a CRC-32C
and takes one sector of 512 bytes for up to 61 partitions, more sectors beyond; the valid slot with
the higher counter is current. A power cut can tear a slot of many sectors, so only one slot is
written between two fsyncs of the file: the other slot holds what the last fsync made durable.
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

FORMAT_VERSION = 4
SECTOR_SIZE = 512

_MAGIC = b"MUSTERWM"
_HEADER = struct.Struct(">8sII22s")
_SLOT_HEAD = struct.Struct(">QQ")
_OFFSET = struct.Struct(">Q")
_CRC = struct.Struct(">I")
_CLUSTER_ID_LENGTH = 22


@dataclass(frozen=True, slots=True)
class WatermarkHeader:
    """The fixed properties of a store; ``cluster_id`` has 22 ASCII characters."""

    partitions: int
    cluster_id: str
    format_version: int = FORMAT_VERSION


class _Slot(NamedTuple):
    counter: int
    sequence: int
    offsets: tuple[int, ...]


class Watermark:
    """An open watermark file. ``mark`` and ``sync`` may run in different threads.

    ``sequence`` is the store's sequence number and ``offsets`` the log end offset of each partition
    that were durable at the last mark. Methods raise ``StoreFailed`` on I/O errors.
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
        """Whether nothing was ever marked: the creation of the store did not complete."""
        return self._counter == 0

    def mark(self, offsets: Mapping[LogPartition, LogOffset], sequence: int) -> None:
        """Record what is durable now, without an fsync: takes a few microseconds."""
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
        """Durably raise the format in the header to that of this version."""
        if self.header.format_version == FORMAT_VERSION:
            return
        header = replace(self.header, format_version=FORMAT_VERSION)
        with _disk_errors("write"):
            os.pwrite(self._file, _encode_header(header), 0)
            os.fdatasync(self._file)
        self.header = header

    def sync(self) -> None:
        """Make the last mark durable. Marks made meanwhile wait in memory: see the module."""
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
        """Make the last mark durable and close the file. Idempotent."""
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
    """Create the file atomically and durably, with nothing marked."""
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
    """Open the file; raises ``StoreCorrupt`` if neither slot is valid, and ``FormatTooNew``."""
    with _disk_errors("open"):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        header = _read_header(path, file)
        slots = [_read_slot(file, header.partitions, index) for index in (0, 1)]
        if slots == [None, None]:
            raise StoreCorrupt(f"{path} is damaged: neither of its slots is valid")
        with _disk_errors("fsync"):
            os.fdatasync(file)
        return Watermark(file, header, slots)
    except BaseException:
        os.close(file)
        raise


def read_watermark_header(path: Path) -> WatermarkHeader:
    """Read the header; nothing is written."""
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
    """Read the offset up to which each partition was acknowledged; nothing is written.

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
        raise StoreCorrupt(f"{path} is damaged: neither of its slots is valid")
    return max(whole, key=lambda slot: slot.counter).offsets


def sync_folder(path: Path) -> None:
    """Make the entries of a folder durable (fsync of the folder)."""
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
        raise ValueError(f"cluster id {header.cluster_id!r} is not {_CLUSTER_ID_LENGTH} characters")
    content = _HEADER.pack(_MAGIC, header.format_version, header.partitions, cluster_id)
    return (content + _CRC.pack(crc32c.crc32c(content))).ljust(SECTOR_SIZE, b"\0")


def _read_header(path: Path, file: int) -> WatermarkHeader:
    with _disk_errors("read"):
        content = os.pread(file, SECTOR_SIZE, 0)
    if len(content) < SECTOR_SIZE or content[: len(_MAGIC)] != _MAGIC:
        raise StoreCorrupt(f"{path} is not a watermark file")
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
