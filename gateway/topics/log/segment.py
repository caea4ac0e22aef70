"""One segment file of a partition: consecutive record batches in offset order.

The file name is the base offset of the first batch; the other batches follow without gaps. Between
the end of a segment and the next segment there may be a gap.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gateway.topics.log.open_files import OpenFiles, write_at
from storage.codec.batches import HEADER_SIZE, BatchHeader, check_crc, read_batch_header
from storage.codec.errors import CodecError

SUFFIX = ".log"
NO_TIMESTAMP = -1

LOAD_BATCHES: Final = 250
"""Batches loaded in one step, about 5 µs each."""
LOAD_BYTES: Final = 1 << 20
"""Bytes loaded and CRC-checked in one step, but at least one batch."""

_READ_BYTES = 1 << 18
_SCAN_BYTES = 1 << 16
_INDEX_INTERVAL_BYTES = 1 << 13
_SIZE_PREFIX = 12
_PLACE = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta of a batch."""


class Located(NamedTuple):
    """A batch in a file: its position and its header."""

    position: int
    header: BatchHeader


class _Index:
    """A sparse index: per interval the offset and position of a batch, and the largest timestamp.

    An entry takes 24 bytes, and there may be very many small batches.
    """

    __slots__ = ("max_timestamps", "offsets", "positions")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.positions = array("q")
        self.max_timestamps = array("q")

    def note(self, position: int, header: BatchHeader) -> None:
        """Add the next batch."""
        if not self.positions or position - self.positions[-1] >= _INDEX_INTERVAL_BYTES:
            self.offsets.append(header.base_offset)
            self.positions.append(position)
            self.max_timestamps.append(header.max_timestamp)
        elif header.max_timestamp > self.max_timestamps[-1]:
            self.max_timestamps[-1] = header.max_timestamp


class Segment:
    """A segment file, of which the first ``size`` bytes are valid.

    It must be loaded before it is read: loading indexes the batches and checks their CRCs.
    """

    __slots__ = (
        "_files",
        "_index",
        "_loaded_to",
        "base_offset",
        "max_timestamp",
        "next_offset",
        "path",
        "size",
    )

    def __init__(self, folder: Path, base_offset: int, files: OpenFiles, size: int = 0) -> None:
        self.path = folder / f"{base_offset:020d}{SUFFIX}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.size = size
        self._files = files
        self._index = _Index()
        self._loaded_to = 0 if size else None

    @property
    def is_loaded(self) -> bool:
        """Whether the whole file is indexed and checked."""
        return self._loaded_to is None

    def load_some(self) -> Sequence[BatchHeader]:
        """Load the next batches, up to the first that is partial or corrupt.

        At the end ``size`` becomes the end of the last good batch. Each call continues where the
        last one stopped; no file is held open in between. Raises ``OSError``.
        """
        begin = self._loaded_to
        assert begin is not None, "the segment is loaded already"
        found: list[BatchHeader] = []
        for located in self._scan(begin, self.size, check=True):
            self._note(located)
            found.append(located.header)
            self._loaded_to = located.position + located.header.size
            if len(found) == LOAD_BATCHES or self._loaded_to - begin >= LOAD_BYTES:
                return found
        assert self._loaded_to is not None
        self.size, self._loaded_to = self._loaded_to, None
        return found

    def truncate_file(self) -> None:
        """Truncate the file to the last good batch."""
        descriptor = self._files.get(self.path)
        if os.fstat(descriptor).st_size > self.size:
            os.ftruncate(descriptor, self.size)

    def append(self, data: bytes, header: BatchHeader) -> None:
        """Write one batch, whose offsets are assigned; raises ``OSError``.

        A failed write leaves the segment unchanged; the next one overwrites its bytes.
        """
        write_at(self._files.get(self.path), data, self.size)
        self._note(Located(self.size, header))
        self.size += len(data)

    def read(self, offset: int, max_bytes: int, at_least_one: bool) -> bytes:
        """Whole batches from the first that ends at or after ``offset`` on.

        At most ``max_bytes``, but one whole batch if ``at_least_one``. Raises ``OSError``.
        """
        position = self._find(offset)
        if position is None:
            return b""
        window = min(max(max_bytes, HEADER_SIZE), self.size - position)
        data = os.pread(self._files.get(self.path), window, position)
        end = self._compute_whole_batches_end(data, position, max_bytes)
        if end or not at_least_one:
            return data[:end]
        size = _compute_needed(data, 0)
        data = os.pread(self._files.get(self.path), size, position)
        return data if len(data) == size else b""

    def read_batch(self, located: Located) -> bytes:
        """The bytes of one batch."""
        return os.pread(self._files.get(self.path), located.header.size, located.position)

    def list_batches(self) -> Iterator[Located]:
        """All batches in offset order, without those appended during the iteration."""
        return self._scan(0, self.size, check=False)

    def note_written(self, header: BatchHeader) -> None:
        """Note a batch that the caller has written to the end of the file."""
        self._note(Located(self.size, header))
        self.size += header.size

    def batches_with_timestamp(self, timestamp: int) -> Iterator[Located]:
        """The batches whose largest timestamp is at least ``timestamp``, in offset order."""
        positions, max_timestamps = self._index.positions, self._index.max_timestamps
        for number, max_timestamp in enumerate(max_timestamps):
            if max_timestamp < timestamp:
                continue
            end = positions[number + 1] if number + 1 < len(positions) else self.size
            for located in self._scan(positions[number], end, check=False):
                if located.header.max_timestamp >= timestamp:
                    yield located

    def forget_file(self) -> None:
        """Close and delete the file."""
        self._files.forget(self.path)
        self.path.unlink(missing_ok=True)

    def _note(self, located: Located) -> None:
        position, header = located
        self._index.note(position, header)
        self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
        self.next_offset = header.last_offset + 1

    def _find(self, offset: int) -> int | None:
        """The position of the first batch that ends at or after ``offset``."""
        index = self._index
        if offset >= self.next_offset or not index.offsets:
            return None
        start = index.positions[max(bisect_right(index.offsets, offset) - 1, 0)]
        # All batches up to the next index entry start within the interval.
        length = min(_INDEX_INTERVAL_BYTES + HEADER_SIZE, self.size - start)
        data = os.pread(self._files.get(self.path), length, start)
        pos, end = 0, len(data) - HEADER_SIZE
        while pos <= end:
            base_offset, size, last_offset_delta = _PLACE.unpack_from(data, pos)
            if base_offset + last_offset_delta >= offset:
                return start + pos
            pos += max(size + _SIZE_PREFIX, HEADER_SIZE)
        return None

    def _compute_whole_batches_end(self, data: bytes, position: int, max_bytes: int) -> int:
        """The end of the last whole batch in ``data``, which was read at ``position``."""
        limit = min(len(data), max_bytes)
        # A batch that starts before an index entry ends by that entry: start at the last one.
        positions = self._index.positions
        end = max(positions[bisect_right(positions, position + limit) - 1] - position, 0)
        while end + HEADER_SIZE <= limit:
            _, size, _ = _PLACE.unpack_from(data, end)
            size = max(size + _SIZE_PREFIX, HEADER_SIZE)
            if end + size > limit:
                break
            end += size
        return end

    def _scan(self, start: int, end: int, *, check: bool) -> Iterator[Located]:
        """Batches from ``start`` on, until ``end`` or the first that is partial or corrupt.

        The CRC does not cover a batch's base offset, so ``check`` also requires that there are no
        gaps.
        """
        window = start
        data = b""
        position = start
        expected = self.next_offset if check else None
        while position < end:
            left = len(data) - (position - window)
            needed = _compute_needed(data, position - window)
            if needed > left:
                if needed > end - position:
                    return
                length = max(_READ_BYTES if check else _SCAN_BYTES, needed)
                length = min(length, end - position)
                data = os.pread(self._files.get(self.path), length, position)
                window = position
                if len(data) < needed:
                    return
                continue
            located = _read_located(data, position - window, position, check=check)
            if located is None or expected not in (None, located.header.base_offset):
                return
            expected = located.header.last_offset + 1
            yield located
            position += located.header.size


def _compute_needed(data: bytes, pos: int) -> int:
    """How many bytes from ``pos`` on are needed to read the next batch."""
    if len(data) - pos < HEADER_SIZE:
        return HEADER_SIZE
    return max(
        int.from_bytes(data[pos + 8 : pos + 12], "big", signed=True) + _SIZE_PREFIX, HEADER_SIZE
    )


def _read_located(data: bytes, pos: int, position: int, *, check: bool) -> Located | None:
    try:
        header = read_batch_header(data, pos)
        if check:
            check_crc(data, pos, header)
    except CodecError:
        return None
    return Located(position, header)
