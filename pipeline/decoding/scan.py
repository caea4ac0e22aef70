"""The batches of a piece of a log, and between them what cannot be read.

Nothing that is wrong ends the walk: bytes of which no batch can be made are given as ``Damage``,
and the walk goes on with the next batch whose CRC is right. Zeros up to the end are what a broker
allocated ahead, and no damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.byte_source import ByteSource
from pipeline.schema import BAD_CRC, TRUNCATED, UNREADABLE_BATCH
from storage.codec.batches import HEADER_SIZE, BatchHeader, check_crc, read_batch_header
from storage.codec.errors import ChecksumError, CodecError
from storage.columnar.batch_columns import (
    BatchColumns,
    check_crcs,
    read_batch_columns,
    split_beginning,
)

BLOCK_BYTES = 4 << 20
MAX_BATCH_BYTES = 100 << 20
"""A batch that claims more is damaged; Kafka's own limit is 1 MiB by default."""

KEPT_BYTES = 64 << 10
"""So much of what cannot be read is kept."""

_MAX_OFFSET_GAP = 1 << 40
_MAX_CANDIDATES = 10_000
"""What looks so often like a batch was made to; the rest of it is given up."""

_LOOKED_AHEAD = 4
"""Batches that are asked whether one before them has the right offset."""

_LENGTH_END = 12
_MAGIC = b"\x02"
_MAGIC_AT = 16


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of which no record can be read: ``problem`` is one of ``schema.BATCH_PROBLEMS``.

    ``offset`` is the first that is missing as far as is known, ``data`` the bytes, cut at
    ``KEPT_BYTES``.
    """

    position: int
    size: int
    offset: int
    problem: str
    detail: str
    data: bytes


Piece = BatchColumns | Damage


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """A byte at which a batch begins, or will, and the least offset that it can have."""

    position: int
    next_offset: int


_BEGINNING = ScanPosition(0, 0)


def scan_batches(
    source: ByteSource,
    begin: int = 0,
    end: int | None = None,
    *,
    start: ScanPosition = _BEGINNING,
) -> Iterator[Piece]:
    """The batches whose first byte is in [begin, end), some MiB at a time, their CRCs checked.

    The walk starts where a batch begins, ``start``, so that parts that are next to each other give
    every batch once, whatever is damaged.
    """
    scan = _Scan(source, start)
    limit = source.size if end is None else min(end, source.size)
    while scan.position < min(begin, limit):
        # Also what is passed over is checked: damage decides where the next batch begins.
        for _ in scan.take(begin):
            pass
    while scan.position < limit:
        yield from scan.take(limit)


class _Scan:
    """``position`` is where the walk has come to, ``_next_offset`` what may come there."""

    def __init__(self, source: ByteSource, start: ScanPosition) -> None:
        self.position = start.position
        self._source = source
        self._next_offset = start.next_offset

    def take(self, limit: int) -> Iterator[Piece]:
        """What begins here and before ``limit``, at least one piece of it."""
        chunk = self._source.read(self.position, min(BLOCK_BYTES, limit - self.position))
        batches = _split(chunk)
        if batches is not None and len(batches.starts) and self._is_good(batches):
            self._pass(int(batches.sizes.sum()), batches)
            yield batches
            return
        yield from self._take_one_by_one(limit)

    def _take_one_by_one(self, limit: int) -> Iterator[Piece]:
        """As ``take``, for a block in which something is unusual."""
        held: list[bytes] = []
        size = 0
        damage: Damage | None = None
        limit = min(limit, self.position + BLOCK_BYTES)
        while damage is None and self.position < limit:
            found = self._read_batch()
            if isinstance(found, Damage):
                damage = found
            elif found is None:
                break
            else:
                held.append(found)
                size += len(found)
        if held:
            yield read_batch_columns(held)
        if damage is not None:
            yield damage

    def _read_batch(self) -> bytes | Damage | None:
        """The batch that begins here, what is here instead, or ``None`` for zeros to the end."""
        source, start = self._source, self.position
        left = source.size - start
        head = source.read(start, HEADER_SIZE)
        size = int.from_bytes(head[8:12], "big", signed=True) + _LENGTH_END
        if not any(head) and self._is_zero_from(start):
            self.position = source.size
            return None
        if len(head) < HEADER_SIZE:
            return self._resume(UNREADABLE_BATCH, f"a batch of which only {left} bytes are there")
        if head[_MAGIC_AT] in (0, 1):
            detail = f"message format v{head[_MAGIC_AT]}, only v2 can be read"
            return self._resume(UNREADABLE_BATCH, detail)
        if not HEADER_SIZE <= size <= MAX_BATCH_BYTES:
            return self._resume(UNREADABLE_BATCH, f"a batch cannot have {size} bytes")
        if size > left:
            detail = f"a batch of {size} bytes, of which {left} are there"
            return self._resume(UNREADABLE_BATCH, detail)
        return self._check_batch(source.read(start, size))

    def _check_batch(self, data: bytes) -> bytes | Damage:
        try:
            header = read_batch_header(data)
            check_crc(data, 0, header)
        except ChecksumError as error:
            if self._may_begin(self.position + len(data)):
                return self._give_up(len(data), BAD_CRC, str(error), self._next_offset)
            return self._resume(BAD_CRC, str(error))
        except CodecError as error:
            return self._resume(UNREADABLE_BATCH, str(error))
        base_offset, next_offset = header.base_offset, header.last_offset + 1
        if base_offset < self._next_offset or self._has_leapt(
            base_offset, next_offset, self.position + len(data)
        ):
            detail = f"offset {base_offset} is out of order: it comes after {self._next_offset - 1}"
            return self._give_up(len(data), UNREADABLE_BATCH, detail, self._next_offset)
        self.position += len(data)
        self._next_offset = next_offset
        return data

    def _is_good(self, batches: BatchColumns) -> bool:
        try:
            check_crcs(batches)
        except CodecError:
            return False
        befores = np.concatenate(([self._next_offset - 1], batches.last_offsets[:-1]))
        if not (batches.base_offsets > befores).all():
            return False
        end = self.position + int(batches.sizes.sum())
        last, next_offset = int(batches.base_offsets[-1]), int(batches.last_offsets[-1]) + 1
        return not self._has_leapt(last, next_offset, end, int(befores[-1]) + 1)

    def _pass(self, size: int, batches: BatchColumns) -> None:
        self.position += size
        self._next_offset = int(batches.last_offsets[-1]) + 1

    def _resume(self, problem: str, detail: str) -> Damage:
        """Goes to the next batch whose CRC is right; without any, the rest was cut off."""
        found = self._find_next(self.position + 1, self._next_offset)
        if found is not None:
            return self._give_up(found - self.position, problem, detail, self._next_offset)
        size = self._source.size - self.position
        cut = TRUNCATED if problem == UNREADABLE_BATCH else problem
        return self._give_up(size, cut, detail, self._next_offset)

    def _has_leapt(
        self, base_offset: int, next_offset: int, end: int, expected: int | None = None
    ) -> bool:
        """Whether batches after one that ends here have offsets that it has passed over.

        No CRC covers the offset of a batch, and a wrong one would make all others come too late.
        """
        expected = self._next_offset if expected is None else expected
        if base_offset == expected:
            return False
        position = end
        for _ in range(_LOOKED_AHEAD):
            header = self._read_header(position)
            if header is None:
                found = self._find_next(position + 1, expected)
                header = None if found is None else self._read_header(found)
                if found is None or header is None:
                    return False
                position = found
            if expected <= header.base_offset < next_offset:
                return True
            position += header.size
        return False

    def _find_next(self, start: int, next_offset: int) -> int | None:
        """The first place from ``start`` on where a whole batch with a right CRC begins."""
        candidates = 0
        while window := self._source.read(start, BLOCK_BYTES + HEADER_SIZE):
            found = window.find(_MAGIC, _MAGIC_AT)
            while 0 <= found < BLOCK_BYTES + _MAGIC_AT:
                head = found - _MAGIC_AT
                offset = int.from_bytes(window[head : head + 8], "big")
                if next_offset <= offset < next_offset + _MAX_OFFSET_GAP:
                    candidates += 1
                    if candidates > _MAX_CANDIDATES:
                        return None
                    if self._read_header(start + head) is not None:
                        return start + head
                found = window.find(_MAGIC, found + 1)
            start += BLOCK_BYTES
        return None

    def _give_up(self, size: int, problem: str, detail: str, offset: int) -> Damage:
        position = self.position
        self.position += size
        data = self._source.read(position, min(size, KEPT_BYTES))
        return Damage(position, size, offset, problem, f"byte {position}: {detail}", data)

    def _may_begin(self, position: int) -> bool:
        """Whether the log can go on here: it ends, or a batch with a plausible header begins."""
        head = self._source.read(position, HEADER_SIZE)
        if not any(head):
            return True
        size = int.from_bytes(head[8:12], "big", signed=True) + _LENGTH_END
        return len(head) == HEADER_SIZE and head[_MAGIC_AT] == 2 and size >= HEADER_SIZE

    def _read_header(self, position: int) -> BatchHeader | None:
        """The header of a batch that lies here whole with its CRC right."""
        head = self._source.read(position, HEADER_SIZE)
        size = int.from_bytes(head[8:12], "big", signed=True) + _LENGTH_END
        if not HEADER_SIZE <= size <= min(MAX_BATCH_BYTES, self._source.size - position):
            return None
        try:
            data = self._source.read(position, size)
            header = read_batch_header(data)
            check_crc(data, 0, header)
        except CodecError:
            return None
        return header

    def _is_zero_from(self, position: int) -> bool:
        while chunk := self._source.read(position, BLOCK_BYTES):
            if chunk.count(0) != len(chunk):
                return False
            position += len(chunk)
        return True


def _split(chunk: bytes) -> BatchColumns | None:
    """The whole batches that a chunk begins with; ``None`` where one of them is none."""
    try:
        return split_beginning(chunk)
    except CodecError:
        return None
