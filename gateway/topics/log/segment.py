"""One segment file of a partition: record batches one after the other, in offset order.

The name of the file is its base offset, at which its first batch begins; the others follow without
a gap. Between the last batch of a file and the next file offsets may be missing.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gateway.topics.log.open_files import OpenFiles, write_at
from storage.codec.batches import HEADER_SIZE, BatchHeader, check_crc, read_batch_header
from storage.codec.errors import CodecError

SUFFIX = ".log"
NO_TIMESTAMP = -1

_READ_BYTES = 1 << 20
_INDEX_INTERVAL_BYTES = 1 << 16
_SIZE_PREFIX = 12


class Located(NamedTuple):
    """A batch in a file: where it begins and what its header says."""

    position: int
    header: BatchHeader


class _IndexEntry:
    """From ``offset`` at ``position`` on, up to the next entry, timestamps reach this far."""

    __slots__ = ("max_timestamp", "offset", "position")

    def __init__(self, offset: int, position: int, max_timestamp: int) -> None:
        self.offset = offset
        self.position = position
        self.max_timestamp = max_timestamp


class Segment:
    """A segment file; ``size`` is how much of it counts.

    ``load`` must have been called before anything is read from it: it finds where the batches
    are, and that each has its CRC.
    """

    __slots__ = ("_files", "_index", "base_offset", "next_offset", "path", "size")

    def __init__(self, folder: Path, base_offset: int, files: OpenFiles, size: int = 0) -> None:
        self.path = folder / f"{base_offset:020d}{SUFFIX}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size = size
        self._files = files
        self._index: list[_IndexEntry] | None = None if size else []

    @property
    def is_loaded(self) -> bool:
        """Whether it is known what is in the file."""
        return self._index is not None

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of all batches, or -1."""
        entries = self._index or ()
        return max((entry.max_timestamp for entry in entries), default=NO_TIMESTAMP)

    def load(self) -> Iterator[BatchHeader]:
        """Go through the file once, batch by batch; it ends at the first that is not whole.

        ``size`` is then the end of the last good batch.
        """
        self._index = []
        end = 0
        for located in self._scan(0, self.size, check=True):
            self._note(located)
            end = located.position + located.header.size
            yield located.header
        self.size = end

    def load_in_steps(self) -> Iterator[None]:
        """As ``load``, for who lets others run between: they see all that was found, or nothing.

        Ends at once where somebody has loaded it.
        """
        apart = Segment(self.path.parent, self.base_offset, self._files, self.size)
        for _ in () if self.is_loaded else apart.load():
            yield
            if self.is_loaded:
                return
        if not self.is_loaded:
            self._index, self.size = apart._index, apart.size
            self.next_offset = apart.next_offset

    def truncate_file(self) -> None:
        """Cut off what lies behind the last good batch."""
        descriptor = self._files.get(self.path)
        if os.fstat(descriptor).st_size > self.size:
            os.ftruncate(descriptor, self.size)

    def append(self, data: bytes, header: BatchHeader) -> None:
        """Write one batch, whose bytes and header have their offsets; raises ``OSError``.

        Where it fails the segment is as it was, and what the file holds beyond is written over.
        """
        write_at(self._files.get(self.path), data, self.size)
        self._note(Located(self.size, header))
        self.size += len(data)

    def read(self, offset: int, max_bytes: int, at_least_one: bool) -> bytes:
        """Whole batches from the one that holds ``offset``, or follows it, on.

        At most ``max_bytes``, but one batch where ``at_least_one``. Raises ``OSError``.
        """
        position = self._find(offset)
        if position is None:
            return b""
        window = min(max(max_bytes, HEADER_SIZE), self.size - position)
        data = os.pread(self._files.get(self.path), window, position)
        end = _compute_whole_batches_end(data, max_bytes)
        if end or not at_least_one:
            return data[:end]
        size = _compute_needed(data, 0)
        data = os.pread(self._files.get(self.path), size, position)
        return data if len(data) == size else b""

    def read_batch(self, located: Located) -> bytes:
        """The bytes of one batch."""
        return os.pread(self._files.get(self.path), located.header.size, located.position)

    def list_batches(self) -> Iterator[Located]:
        """All batches, in offset order; what is appended meanwhile is not among them."""
        return self._scan(0, self.size, check=False)

    def note_written(self, header: BatchHeader) -> None:
        """A batch that the file has already, behind all that it is known to have."""
        self._note(Located(self.size, header))
        self.size += header.size

    def batches_with_timestamp(self, timestamp: int) -> Iterator[Located]:
        """Batches that say they reach ``timestamp``, in offset order."""
        entries = self._index or []
        for number, entry in enumerate(entries):
            if entry.max_timestamp < timestamp:
                continue
            end = entries[number + 1].position if number + 1 < len(entries) else self.size
            for located in self._scan(entry.position, end, check=False):
                if located.header.max_timestamp >= timestamp:
                    yield located

    def forget_file(self) -> None:
        """Close and delete the file."""
        self._files.forget(self.path)
        self.path.unlink(missing_ok=True)

    def _note(self, located: Located) -> None:
        index = self._index
        assert index is not None, "a segment is loaded before it is added to"
        position, header = located
        if not index or position - index[-1].position >= _INDEX_INTERVAL_BYTES:
            index.append(_IndexEntry(header.base_offset, position, header.max_timestamp))
        elif header.max_timestamp > index[-1].max_timestamp:
            index[-1].max_timestamp = header.max_timestamp
        self.next_offset = header.last_offset + 1

    def _find(self, offset: int) -> int | None:
        """The position of the first batch that ends at or after ``offset``."""
        entries = self._index or []
        if offset >= self.next_offset or not entries:
            return None
        number = bisect_right(entries, offset, key=lambda entry: entry.offset) - 1
        start = entries[max(number, 0)].position
        for located in self._scan(start, self.size, check=False):
            if located.header.last_offset >= offset:
                return located.position
        return None

    def _scan(self, start: int, end: int, *, check: bool) -> Iterator[Located]:
        """Batches from ``start`` on, until ``end`` or the first that is not whole.

        The CRC does not cover the offset of a batch, but offsets of a segment have no gaps.
        """
        window = start
        data = b""
        position = start
        expected = None if start else self.base_offset
        while position < end:
            left = len(data) - (position - window)
            needed = _compute_needed(data, position - window)
            if needed > left:
                if needed > end - position:
                    return
                length = max(_READ_BYTES if check else _INDEX_INTERVAL_BYTES, needed)
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
    """How many bytes from ``pos`` on must be there to read the next batch."""
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


def _compute_whole_batches_end(data: bytes, max_bytes: int) -> int:
    limit = min(len(data), max_bytes)
    end = 0
    while end + HEADER_SIZE <= limit:
        size = _compute_needed(data, end)
        if end + size > limit:
            break
        end += size
    return end
