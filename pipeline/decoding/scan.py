"""Scans part of a log for batches, and for unreadable bytes between them.

The scan does not stop at errors: it reports bytes that are not a batch as ``Damage`` and resumes at
the next batch with a valid CRC. Zeros up to the end of the file are a broker's preallocation, not
damage.
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
"""A batch that claims to be larger is damaged; Kafka's default limit is 1 MiB."""

KEPT_BYTES = 64 << 10
"""How many bytes of damage are kept."""

_MAX_OFFSET_GAP = 1 << 40
_MAX_CANDIDATES = 10_000
"""More candidates than this are crafted to look like batches; the rest is then skipped."""

_LOOKED_AHEAD = 4
"""How many following batches may contradict the offset of a batch."""

_LENGTH_END = 12
_MAGIC = b"\x02"
_MAGIC_AT = 16


@dataclass(frozen=True, slots=True)
class Damage:
    """Unreadable bytes: ``problem`` is one of ``schema.BATCH_PROBLEMS``.

    ``offset`` is the first missing offset as far as is known; ``data`` has the bytes, up to
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
    """The byte at which a batch begins, and its lowest possible offset."""

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
    """Scan the batches whose first byte is in [begin, end), in blocks of some MiB; check CRCs.

    The scan begins at ``start``, where a batch begins, so that adjacent ranges return every batch
    exactly once, whatever the damage.
    """
    scan = _Scan(source, start)
    limit = source.size if end is None else min(end, source.size)
    while scan.position < min(begin, limit):
        # Check skipped batches too: damage decides where the next batch begins.
        for _ in scan.take(begin):
            pass
    while scan.position < limit:
        yield from scan.take(limit)


class _Scan:
    """A scan at ``position``, where a batch has at least the offset ``_next_offset``."""

    def __init__(self, source: ByteSource, start: ScanPosition) -> None:
        self.position = start.position
        self._source = source
        self._next_offset = start.next_offset

    def take(self, limit: int) -> Iterator[Piece]:
        """Read at least one piece that begins here and before ``limit``."""
        chunk = self._source.read(self.position, min(BLOCK_BYTES, limit - self.position))
        batches = _split(chunk)
        if batches is not None and len(batches.starts) and self._is_good(batches):
            self._pass(int(batches.sizes.sum()), batches)
            yield batches
            return
        yield from self._take_one_by_one(limit)

    def _take_one_by_one(self, limit: int) -> Iterator[Piece]:
        """As ``take``, for a block with damage or other irregularities."""
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
        """The batch that begins here, damage, or ``None`` for zeros to the end."""
        source, start = self._source, self.position
        left = source.size - start
        head = source.read(start, HEADER_SIZE)
        size = int.from_bytes(head[8:12], "big", signed=True) + _LENGTH_END
        if not any(head) and self._is_zero_from(start):
            self.position = source.size
            return None
        if len(head) < HEADER_SIZE:
            return self._resume(UNREADABLE_BATCH, f"a batch header is cut off after {left} bytes")
        if head[_MAGIC_AT] in (0, 1):
            detail = f"message format v{head[_MAGIC_AT]}, only v2 can be read"
            return self._resume(UNREADABLE_BATCH, detail)
        if not HEADER_SIZE <= size <= MAX_BATCH_BYTES:
            return self._resume(UNREADABLE_BATCH, f"a batch cannot have {size} bytes")
        if size > left:
            detail = f"a batch of {size} bytes is cut off after {left} bytes"
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
        """Skip to the next batch with a valid CRC; if there is none, the rest was cut off."""
        found = self._find_next(self.position + 1, self._next_offset)
        if found is not None:
            return self._give_up(found - self.position, problem, detail, self._next_offset)
        size = self._source.size - self.position
        cut = TRUNCATED if problem == UNREADABLE_BATCH else problem
        return self._give_up(size, cut, detail, self._next_offset)

    def _has_leapt(
        self, base_offset: int, next_offset: int, end: int, expected: int | None = None
    ) -> bool:
        """Whether batches after one that ends here have offsets that it has skipped.

        No CRC covers a batch's base offset, and a wrong one would put all later batches out of
        order.
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
        """The first position from ``start`` of a whole batch with a valid CRC."""
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
        """Whether the log may continue here: it ends, or a batch with a plausible header begins."""
        head = self._source.read(position, HEADER_SIZE)
        if not any(head):
            return True
        size = int.from_bytes(head[8:12], "big", signed=True) + _LENGTH_END
        return len(head) == HEADER_SIZE and head[_MAGIC_AT] == 2 and size >= HEADER_SIZE

    def _read_header(self, position: int) -> BatchHeader | None:
        """The header of the batch at a position, if it is whole with a valid CRC."""
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
    """The whole batches at the start of a chunk; ``None`` if one of them is malformed."""
    try:
        return split_beginning(chunk)
    except CodecError:
        return None
