"""Reading segment files in blocks of batches, much faster than batch by batch.

If a file has trailing zeros, damage or a torn tail, ``storage.segments`` reads the rest of it and
raises the precise error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from storage.codec.errors import CodecError
from storage.columnar.batch_columns import (
    BatchColumns,
    check_crcs,
    read_batch_columns,
    split_beginning,
)
from storage.segments.errors import SegmentError
from storage.segments.segment_reader import MAX_BATCH_BYTES, SegmentFile, read_segments

BLOCK_BYTES = 4 << 20

_LENGTH_AT = slice(8, 12)
_LENGTH_END = 12


class _Unusual(Exception):
    """The file has something that ``storage.segments`` must handle."""


def read_segment_blocks(files: Sequence[SegmentFile]) -> Iterator[BatchColumns]:
    """Iterate over the batches of one partition in offset order, in blocks of a few MiB.

    Checks CRCs. Raises what ``storage.segments.segment_reader.read_segments`` raises for the same
    files, after yielding every batch before the malformed one.
    """
    next_offset = 0
    for index, file in enumerate(files):
        reader = _FileReader(file, max(next_offset, file.base_offset))
        try:
            yield from reader.read()
        except _Unusual:
            yield from _read_slowly(files, index, reader)
            return
        next_offset = reader.next_offset


class _FileReader:
    """Reads one file: ``position`` is the next byte, ``next_offset`` the lowest next offset."""

    def __init__(self, file: SegmentFile, next_offset: int) -> None:
        self.position = 0
        self.next_offset = next_offset
        self._path = file.path

    def read(self) -> Iterator[BatchColumns]:
        """Yield blocks of complete batches; raises ``_Unusual`` if none begins at ``position``."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise SegmentError(f"{self._path} cannot be read: {error.strerror}") from error
        try:
            wanted = BLOCK_BYTES
            while chunk := os.pread(handle, wanted, self.position):
                batches = self._take(chunk)
                if len(batches.starts):
                    wanted = BLOCK_BYTES
                    yield batches
                else:
                    wanted = _compute_size(chunk, wanted)
        except OSError as error:
            raise SegmentError(f"{self._path} cannot be read: {error.strerror}") from error
        finally:
            os.close(handle)

    def _take(self, chunk: bytes) -> BatchColumns:
        try:
            batches = split_beginning(chunk)
            check_crcs(batches)
        except CodecError as error:
            raise _Unusual from error
        if len(batches.starts):
            befores = np.concatenate(([self.next_offset - 1], batches.last_offsets[:-1]))
            if (batches.base_offsets <= befores).any():
                raise _Unusual
            self.position += int(batches.sizes.sum())
            self.next_offset = int(batches.last_offsets[-1]) + 1
        return batches


def _compute_size(chunk: bytes, wanted: int) -> int:
    """The size of the batch at the start of a chunk, which is larger than the chunk."""
    length = int.from_bytes(chunk[_LENGTH_AT], "big") + _LENGTH_END
    if len(chunk) < wanted or not wanted < length <= MAX_BATCH_BYTES:
        raise _Unusual
    return length


def _read_slowly(
    files: Sequence[SegmentFile], index: int, reader: _FileReader
) -> Iterator[BatchColumns]:
    """Read the rest of a file, from the reader's position, and all files after it."""
    held: list[bytes] = []
    size = 0
    try:
        for batch in read_segments(files[index:]):
            if batch.file == files[index].path and batch.position < reader.position:
                continue
            if not size and batch.header.base_offset < reader.next_offset:
                _raise_disorder(files)
            held.append(batch.data)
            size += len(batch.data)
            if size >= BLOCK_BYTES:
                reader.next_offset = batch.header.last_offset + 1
                yield read_batch_columns(held)
                held, size = [], 0
    except SegmentError:
        if held:
            yield read_batch_columns(held)
        raise
    if held:
        yield read_batch_columns(held)


def _raise_disorder(files: Sequence[SegmentFile]) -> NoReturn:
    """Raise the error of a file that overlaps the one before; only reading both can find it."""
    for _ in read_segments(files):
        pass
    raise SegmentError(f"{files[0].path.parent} changed while it was read")
