"""The records of many batches as arrays of offsets, timestamps, and key and value ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from storage.codec.batches import HEADER_SIZE, decode_batch
from storage.codec.errors import CodecError
from storage.codec.wire import BAD_INPUT, read_zigzag
from storage.columnar.batch_columns import (
    PADDING,
    BatchColumns,
    BoolArray,
    Int64Array,
)
from storage.columnar.varints import read_zigzags

Decompress = Callable[[int, bytes], bytes]

RECORD_SIZE_MIN = 7
NARROW = 100
"""Below this many batches, a vectorized step costs more than walking each batch in Python."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """The records of batches: one element per record in every array, in log order.

    ``data`` is the data of the batches, followed by the decompressed records sections.
    ``batches`` is the index of a record's batch. ``timestamps`` are wall-clock ms. Starts and
    lengths are bytes of ``data``; a length of -1 is null, so a value of length -1 is a tombstone.
    ``have_headers`` marks records with headers, which are validated but not returned.
    """

    data: bytes
    batches: Int64Array
    offsets: Int64Array
    timestamps: Int64Array
    key_starts: Int64Array
    key_lengths: Int64Array
    value_starts: Int64Array
    value_lengths: Int64Array
    have_headers: BoolArray

    def keys(self) -> list[bytes]:
        """The key of every record; a null key is returned as empty bytes."""
        return slice_bytes(self.data, self.key_starts, self.key_lengths)


def slice_bytes(data: bytes, starts: Int64Array, lengths: Int64Array) -> list[bytes]:
    """Slice the data; a negative length gives empty bytes."""
    ends = (starts + np.maximum(lengths, 0)).tolist()
    return [data[start:end] for start, end in zip(starts.tolist(), ends, strict=True)]


def read_record_columns(batches: BatchColumns, decompress: Decompress) -> RecordColumns:
    """Read the records of the batches; equivalent to ``codec.batches.decode_batch`` on each.

    Raises the ``CodecError`` of ``decode_batch`` for a malformed batch. Does not check CRCs: see
    ``check_crcs``. ``decompress`` is usually ``storage.log.compression.decompress``.
    """
    data, begins, ends = _decompress_all(batches, decompress)
    too_short = np.flatnonzero(batches.counts * RECORD_SIZE_MIN > ends - begins)
    if too_short.size:
        _raise_error(batches, int(too_short[0]), decompress)
    frames = _Frames(data, begins, ends, batches.counts)
    frames.find()
    if frames.wrong.any():
        _raise_error(batches, int(np.flatnonzero(frames.wrong)[0]), decompress)
    reader = _RecordReader(data, frames.bodies, frames.ends)
    columns = reader.read(batches)
    if reader.wrong.any():
        _raise_error(batches, int(columns.batches[reader.wrong][0]), decompress)
    for batch in np.unique(columns.batches[columns.have_headers]).tolist():
        decode_batch(batches.data, int(batches.starts[batch]), decompress=decompress)
    return columns


def _raise_error(batches: BatchColumns, index: int, decompress: Decompress) -> NoReturn:
    """Raise the error that ``decode_batch`` raises for this batch."""
    decode_batch(batches.data, int(batches.starts[index]), decompress=decompress)
    offset = int(batches.base_offsets[index])
    raise CodecError(f"batch at offset {offset}: a record timestamp overflows")


def _decompress_all(
    batches: BatchColumns, decompress: Decompress
) -> tuple[bytes, Int64Array, Int64Array]:
    """Append decompressed records to the data; returns where each batch's records lie in it."""
    begins = batches.starts + HEADER_SIZE
    ends = batches.starts + batches.sizes
    compressions = batches.compressions
    compressed = np.flatnonzero(compressions)
    if not compressed.size:
        return batches.data, begins, ends
    data = batches.data
    parts = [data]
    total = len(data)
    for index in compressed.tolist():
        try:
            part = decompress(int(compressions[index]), data[begins[index] : ends[index]])
        except CodecError:
            _raise_error(batches, index, decompress)
        begins[index], ends[index] = total, total + len(part)
        total += len(part)
        parts.append(part)
    return b"".join([*parts, PADDING]), begins, ends


class _Frames:
    """Finds where each record of each batch begins and ends.

    A record only has its length, so the records of a batch must be found one after another. Each
    step finds the next record of all batches at once; when few batches are left, each is walked
    separately.
    """

    def __init__(
        self, data: bytes, begins: Int64Array, ends: Int64Array, counts: Int64Array
    ) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        self._order = np.argsort(-counts, kind="stable")
        self._counts = counts[self._order]
        self._positions = begins[self._order]
        self._limits = ends[self._order]
        self._slots = (np.cumsum(counts) - counts)[self._order]
        total = int(counts.sum())
        self.bodies = np.zeros(total, dtype=np.int64)
        self.ends = np.zeros(total, dtype=np.int64)
        self.wrong: BoolArray = np.zeros(len(counts), dtype=bool)

    def find(self) -> None:
        """Fill ``bodies``, ``ends`` and ``wrong``, which marks malformed batches."""
        wrong = np.zeros(len(self._counts), dtype=bool)
        longest = int(self._counts[0]) if len(self._counts) else 0
        step, width = 0, self._find_width(0)
        while step < longest and width >= NARROW:
            self._take_step(step, width, wrong)
            step += 1
            width = self._find_width(step)
        for index in range(width):
            wrong[index] |= not self._walk(index, step)
        wrong |= self._positions != self._limits
        self.wrong[self._order] = wrong

    def _find_width(self, step: int) -> int:
        """The number of batches that have more than ``step`` records; they come first."""
        return int(np.searchsorted(-self._counts, -step, side="left"))

    def _take_step(self, step: int, width: int, wrong: BoolArray) -> None:
        limits = self._limits[:width]
        lengths, bodies, are_wrong = read_zigzags(self._bytes, self._positions[:width], 5)
        ends = bodies + lengths
        are_wrong |= (lengths < 0) | (ends > limits)
        ends[are_wrong] = limits[are_wrong]
        wrong[:width] |= are_wrong
        slots = self._slots[:width] + step
        self.bodies[slots] = bodies
        self.ends[slots] = ends
        self._positions[:width] = ends

    def _walk(self, index: int, step: int) -> bool:
        """Find the records of one batch from a step on; returns False if it is malformed."""
        data, count = self._data, int(self._counts[index])
        pos, limit = int(self._positions[index]), int(self._limits[index])
        bodies, ends = [], []
        for _ in range(count - step):
            byte = data[pos]
            if byte < 0x80:
                length, body = (byte >> 1) ^ -(byte & 1), pos + 1
            elif (high := data[pos + 1]) < 0x80:
                length, body = (byte & 0x7F | high << 7) >> 1 ^ -(byte & 1), pos + 2
            else:
                try:
                    length, body = read_zigzag(data, pos)
                except BAD_INPUT:
                    return False
            pos = body + length
            if length < 0 or pos > limit:
                return False
            bodies.append(body)
            ends.append(pos)
        slot = int(self._slots[index])
        self.bodies[slot + step : slot + count] = bodies
        self.ends[slot + step : slot + count] = ends
        self._positions[index] = pos
        return True


class _RecordReader:
    """Reads the fields of all records at once, each between its body start and its end."""

    def __init__(self, data: bytes, bodies: Int64Array, ends: Int64Array) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        self._positions = bodies + 1
        self._ends = ends
        self.wrong: BoolArray = bodies >= ends

    def read(self, batches: BatchColumns) -> RecordColumns:
        """Read the columns and mark malformed records in ``wrong``."""
        indices = np.repeat(np.arange(len(batches.counts), dtype=np.int64), batches.counts)
        time_deltas = self._read_zigzags(10)
        offset_deltas = self._read_zigzags(5)
        key_lengths = self._read_zigzags(5)
        key_starts = self._skip(key_lengths)
        value_lengths = self._read_zigzags(5)
        value_starts = self._skip(value_lengths)
        headers = self._read_zigzags(5)
        self.wrong |= (headers < 0) | ((headers == 0) & (self._positions != self._ends))
        offsets = batches.base_offsets[indices] + offset_deltas
        self._check_offsets(offsets, indices, batches)
        return RecordColumns(
            self._data,
            indices,
            offsets,
            self._compute_timestamps(time_deltas, indices, batches),
            key_starts,
            key_lengths,
            value_starts,
            value_lengths,
            headers > 0,
        )

    def _read_zigzags(self, max_bytes: int) -> Int64Array:
        values, positions, are_wrong = read_zigzags(self._bytes, self._positions, max_bytes)
        self.wrong |= are_wrong
        self._positions = self._bound(positions)
        return values

    def _skip(self, lengths: Int64Array) -> Int64Array:
        starts = self._positions
        self.wrong |= lengths < -1
        self._positions = self._bound(starts + np.maximum(lengths, 0))
        return starts

    def _bound(self, positions: Int64Array) -> Int64Array:
        self.wrong |= positions > self._ends
        return np.minimum(positions, self._ends)

    def _check_offsets(
        self, offsets: Int64Array, indices: Int64Array, batches: BatchColumns
    ) -> None:
        self.wrong |= offsets > batches.last_offsets[indices]
        self.wrong |= offsets < batches.base_offsets[indices]
        self.wrong[1:] |= (offsets[1:] <= offsets[:-1]) & (indices[1:] == indices[:-1])

    def _compute_timestamps(
        self, deltas: Int64Array, indices: Int64Array, batches: BatchColumns
    ) -> Int64Array:
        bases = batches.base_timestamps[indices]
        timestamps = bases + deltas
        appended = batches.are_log_append_time[indices]
        overflows: npt.NDArray[np.bool_] = (timestamps < bases) != (deltas < 0)
        self.wrong |= overflows & ~appended
        return np.where(appended, batches.max_timestamps[indices], timestamps)
