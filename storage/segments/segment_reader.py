"""Reading the batches of a partition from its segment files, a few MiB at a time."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from model.ids import LogPartition
from storage.codec.batches import HEADER_SIZE, BatchHeader, check_crc, read_batch_header
from storage.codec.errors import ChecksumError, CodecError
from storage.segments.errors import (
    NotSegments,
    SegmentDamage,
    SegmentError,
    TornTail,
    UnsupportedMessageFormat,
)

CHUNK_BYTES = 4 << 20
MAX_BATCH_BYTES = 100 << 20
"""A batch that declares more is damaged; Kafka's default limit is 1 MiB."""

_MAGIC = 2
_MAGIC_AT = 16
_LENGTH_AT = slice(8, 12)
_LENGTH_END = 12
_PREFIX_SIZE = 17
"""Base offset, length, leader epoch and magic, which identify the message format."""

MAX_TORN_BYTES = 16 << 20
"""More bytes than this after the last complete batch are damage, not a torn write."""

_MAX_OFFSET_GAP = 1 << 40
_MAX_CANDIDATES = 10_000
"""A tail that looks like a batch at this many positions is crafted, not torn."""

_ZERO_RUN = 32
"""If a batch with a wrong CRC ends with this many zeros, its end was never written."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment file and its partition.

    ``base_offset`` is taken from the file name; 0 if the name is not that of a segment.
    """

    path: Path
    partition: LogPartition
    base_offset: int


class RawBatch(NamedTuple):
    """An encoded batch: ``data`` are its bytes, ``position`` is where it begins in the file."""

    partition: LogPartition
    file: Path
    position: int
    header: BatchHeader
    data: bytes


def read_segments(
    files: Sequence[SegmentFile], *, start_offset: int = 0, verify_crc: bool = True
) -> Iterator[RawBatch]:
    """Iterate over the batches of one partition in offset order; ``files`` are in offset order.

    Accepts offset gaps, which compaction leaves, and trailing zeros, which preallocation leaves.
    ``start_offset`` is the lowest offset that the first batch may have. Raises ``SegmentDamage``
    if a batch is malformed, has a wrong CRC or does not follow the batch before it, and
    ``TornTail``, after all complete batches, if the last batch is incomplete.
    """
    next_offset = start_offset
    for index, file in enumerate(files):
        reader = _SegmentReader(file, max(next_offset, file.base_offset), index == len(files) - 1)
        yield from reader.read(verify_crc=verify_crc)
        next_offset = reader.next_offset


class _SegmentReader:
    """Reads one file; ``next_offset`` is the lowest offset that the next batch may have."""

    def __init__(self, file: SegmentFile, next_offset: int, is_last: bool) -> None:
        self.next_offset = next_offset
        self._file = file
        self._is_last = is_last
        self._position = 0
        self._size = 0
        self._buffer = b""
        self._buffer_start = 0

    def read(self, *, verify_crc: bool) -> Iterator[RawBatch]:
        partition, path = self._file.partition, self._file.path
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise SegmentError(f"{path} cannot be read: {error.strerror}") from error
        try:
            self._size = os.fstat(handle).st_size
            while (start := self._fill_header(handle)) is not None:
                header = self._read_header(handle, start)
                start = self._fill(handle, header.size)
                data = self._buffer[start : start + header.size]
                if verify_crc:
                    self._check_crc(handle, data, header)
                yield RawBatch(partition, path, self._position, header, data)
                self._position += header.size
                self.next_offset = header.last_offset + 1
        except OSError as error:
            raise SegmentError(f"{path} cannot be read: {error.strerror}") from error
        finally:
            os.close(handle)

    def _fill(self, handle: int, wanted: int) -> int:
        """Buffer ``wanted`` bytes from the current position; returns their index in the buffer."""
        start = self._position - self._buffer_start
        if start + wanted > len(self._buffer):
            self._buffer = _read_exactly(handle, self._position, max(wanted, CHUNK_BYTES))
            self._buffer_start = self._position
            start = 0
            if len(self._buffer) < wanted:
                raise self._compute_damage("the file became shorter while it was read")
        return start

    def _fill_header(self, handle: int) -> int | None:
        """Buffer the next batch header; returns its index, or ``None`` at the end of the log."""
        left = self._size - self._position
        if left <= 0:
            return None
        start = self._fill(handle, min(left, HEADER_SIZE))
        prefix = self._buffer[start : start + _PREFIX_SIZE]
        if not any(prefix) and self._is_zero_from(handle, self._position):
            if not self._is_last:
                raise self._compute_damage("zeros up to the end, though more segments follow")
            return None
        if left < _PREFIX_SIZE:
            raise self._compute_cut(handle, f"an incomplete batch of {left} bytes")
        if (magic := prefix[_MAGIC_AT]) != _MAGIC:
            raise self._compute_foreign(handle, magic)
        if left < HEADER_SIZE:
            raise self._compute_cut(handle, f"an incomplete batch of {left} bytes")
        return start

    def _read_header(self, handle: int, start: int) -> BatchHeader:
        left = self._size - self._position
        prefix = self._buffer[start : start + _PREFIX_SIZE]
        size = int.from_bytes(prefix[_LENGTH_AT], "big", signed=True) + _LENGTH_END
        if not HEADER_SIZE <= size <= MAX_BATCH_BYTES:
            raise self._compute_damage(f"a batch cannot have {size} bytes")
        if size > left:
            raise self._compute_cut(handle, f"a batch of {size} bytes, of which {left} are left")
        start = self._fill(handle, size)
        try:
            header = read_batch_header(self._buffer, start)
        except CodecError as error:
            raise self._compute_damage(str(error)) from None
        if header.base_offset < self.next_offset:
            raise self._compute_damage(
                f"a batch begins at offset {header.base_offset}, not at or after {self.next_offset}"
            )
        return header

    def _check_crc(self, handle: int, data: bytes, header: BatchHeader) -> None:
        try:
            check_crc(data, 0, header)
        except ChecksumError as error:
            end = self._position + header.size
            if (
                self._is_last
                and not any(data[-_ZERO_RUN:])
                and (end == self._size or self._is_zero_from(handle, end))
            ):
                raise self._compute_error(TornTail, "a batch whose end was not written") from None
            raise self._compute_damage(str(error)) from None

    def _is_zero_from(self, handle: int, position: int) -> bool:
        while chunk := os.pread(handle, CHUNK_BYTES, position):
            if chunk.count(0) != len(chunk):
                return False
            position += len(chunk)
        return True

    def _compute_cut(self, handle: int, what: str) -> SegmentDamage:
        """The error for a batch that ends past the file: torn only if no whole batch follows."""
        if not self._is_last:
            return self._compute_damage(f"{what}, though more segments follow")
        left = self._size - self._position
        if left > MAX_TORN_BYTES:
            return self._compute_damage(what)
        tail = _read_exactly(handle, self._position + 1, left - 1)
        if _holds_batch(tail, self.next_offset):
            return self._compute_damage(f"{what}, though whole batches follow")
        return self._compute_error(TornTail, what)

    def _compute_foreign(self, handle: int, magic: int) -> SegmentError:
        if magic in (0, 1) and self._is_old_message(handle):
            return self._compute_error(
                UnsupportedMessageFormat,
                f"message format v{magic}, only v2 can be read (Kafka 0.11 and later)",
            )
        if self._position == 0:
            return NotSegments(f"{self._file.path} is not a segment of Kafka's log")
        return self._compute_damage("no batch begins here")

    def _is_old_message(self, handle: int) -> bool:
        """Whether a message of format v0 or v1 begins here: its CRC-32 covers magic to end."""
        head = _read_exactly(handle, self._position, _MAGIC_AT)
        size = int.from_bytes(head[_LENGTH_AT], "big", signed=True) + _LENGTH_END
        if not _MAGIC_AT < size <= min(MAX_BATCH_BYTES, self._size - self._position):
            return False
        content = _read_exactly(handle, self._position + _MAGIC_AT, size - _MAGIC_AT)
        return zlib.crc32(content) == int.from_bytes(head[_LENGTH_END:], "big")

    def _compute_damage(self, what: str) -> SegmentDamage:
        return self._compute_error(SegmentDamage, what)

    def _compute_error(self, kind: type[SegmentDamage], what: str) -> SegmentDamage:
        file = self._file
        return kind(what, file.partition, file.path, self._position, self.next_offset)


def _read_exactly(handle: int, position: int, wanted: int) -> bytes:
    """Read ``wanted`` bytes; fewer only at the end of the file."""
    parts = []
    while wanted and (part := os.pread(handle, wanted, position)):
        parts.append(part)
        position += len(part)
        wanted -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _holds_batch(tail: bytes, next_offset: int) -> bool:
    """Whether a complete batch with a correct CRC begins anywhere in the tail."""
    candidates = 0
    found = tail.find(_MAGIC, _MAGIC_AT)
    while found >= 0:
        start = found - _MAGIC_AT
        base_offset = int.from_bytes(tail[start : start + 8], "big", signed=True)
        if next_offset <= base_offset < next_offset + _MAX_OFFSET_GAP:
            candidates += 1
            if candidates > _MAX_CANDIDATES or _is_batch(tail, start):
                return True
        found = tail.find(_MAGIC, found + 1)
    return False


def _is_batch(tail: bytes, start: int) -> bool:
    try:
        check_crc(tail, start, read_batch_header(tail, start))
    except CodecError:
        return False
    return True
