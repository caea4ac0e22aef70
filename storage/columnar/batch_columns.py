"""The headers of many record batches as arrays."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import crc32c
import numpy as np
import numpy.typing as npt

from storage.codec.batches import HEADER_SIZE, check_crc, read_batch_header
from storage.codec.errors import CodecError

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

PADDING = bytes(16)
"""Appended to ``BatchColumns.data``, so that a varint read at its end stays within the buffer."""

_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_LENGTH = struct.Struct(">8xi")
_LENGTH_END = 12
_CRC_START = 21
_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


@dataclass(frozen=True, slots=True, eq=False)
class BatchColumns:
    """The headers of batches: one element per batch in every array, int64 unless noted.

    ``data`` holds the batches, then ``PADDING``. ``starts`` and ``sizes`` are byte positions in
    ``data``. Timestamps are wall-clock ms. The ``are_*`` flags are bool arrays.
    """

    data: bytes
    starts: Int64Array
    sizes: Int64Array
    base_offsets: Int64Array
    last_offsets: Int64Array
    leader_epochs: Int64Array
    crcs: Int64Array
    attributes: Int64Array
    base_timestamps: Int64Array
    max_timestamps: Int64Array
    producer_ids: Int64Array
    producer_epochs: Int64Array
    counts: Int64Array

    @property
    def compressions(self) -> Int64Array:
        """Codec numbers: 0 for none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _COMPRESSION_MASK

    @property
    def are_log_append_time(self) -> BoolArray:
        """Whether the timestamp type of a batch is LogAppendTime."""
        return (self.attributes & _LOG_APPEND_TIME).astype(bool)

    @property
    def are_transactional(self) -> BoolArray:
        """Whether a batch belongs to a transaction, as its marker does too."""
        return (self.attributes & _TRANSACTIONAL).astype(bool)

    @property
    def are_control(self) -> BoolArray:
        """Whether a batch holds control records, such as transaction markers."""
        return (self.attributes & _CONTROL).astype(bool)


def read_batch_columns(batches: Sequence[bytes]) -> BatchColumns:
    """Read the headers of batches, each given as its exact bytes, without checking CRCs.

    Raises the ``CodecError`` of ``read_batch_header`` for the first malformed batch.
    """
    starts = np.fromiter(
        accumulate(map(len, batches), initial=0), dtype=np.int64, count=len(batches) + 1
    )
    columns = _read_columns(b"".join([*batches, PADDING]), starts[:-1], len(starts) - 1)
    wrong = np.flatnonzero(columns.sizes != np.diff(starts))
    if wrong.size:
        batch = batches[wrong[0]]
        size = read_batch_header(batch).size
        raise CodecError(f"{len(batch) - size} bytes follow the batch of {size} bytes")
    return columns


def split_block(block: bytes) -> BatchColumns:
    """Read the headers of a block of consecutive batches, as in a segment file.

    Raises ``CodecError`` as ``read_batch_columns`` does, also for an incomplete batch.
    """
    starts, end = _find_batches(block)
    if end != len(block):
        read_batch_header(block, end)
    return _read_columns(block + PADDING, np.array(starts, dtype=np.int64), len(starts))


def split_beginning(chunk: bytes) -> BatchColumns:
    """``split_block`` for the complete batches at the start of the chunk, possibly none."""
    starts, end = _find_batches(chunk)
    return _read_columns(chunk[:end] + PADDING, np.array(starts, dtype=np.int64), len(starts))


def _find_batches(block: bytes) -> tuple[list[int], int]:
    """Find complete batches; returns their start positions and the end of the last one."""
    starts = []
    position, size = 0, len(block)
    last_start = size - HEADER_SIZE
    unpack = _LENGTH.unpack_from
    while position <= last_start:
        (length,) = unpack(block, position)
        end = position + length + _LENGTH_END
        if length < HEADER_SIZE - _LENGTH_END or end > size:
            break
        starts.append(position)
        position = end
    return starts, position


def check_crcs(columns: BatchColumns) -> None:
    """Raise ``ChecksumError`` for the first batch whose bytes do not match its CRC."""
    view = memoryview(columns.data)
    compute = crc32c.crc32c
    begins = (columns.starts + _CRC_START).tolist()
    ends = (columns.starts + columns.sizes).tolist()
    actual = [compute(view[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    wrong = np.flatnonzero(np.array(actual, dtype=np.int64) != columns.crcs)
    if wrong.size:
        start = int(columns.starts[wrong[0]])
        check_crc(columns.data, start, read_batch_header(columns.data, start))


def _read_columns(data: bytes, starts: Int64Array, count: int) -> BatchColumns:
    room = len(data) - len(PADDING)
    if count and starts[-1] + HEADER_SIZE > room:
        read_batch_header(data[:room], int(starts[-1]))
    # A view with a header at every byte of the data; only those at the starts are copied.
    shape = (max(0, room - HEADER_SIZE + 1),)
    heads = np.ndarray(shape, dtype=_HEADER, buffer=data, strides=(1,))[starts]

    def column(name: str) -> Int64Array:
        return heads[name].astype(np.int64)

    sizes = column("length") + _LENGTH_END
    base_offsets, last_deltas, counts = column("base_offset"), column("last_delta"), column("count")
    wrong = np.flatnonzero(
        (heads["magic"] != 2)
        | (sizes < HEADER_SIZE)
        | (last_deltas < 0)
        | (counts < 0)
        | (starts + sizes > room)
    )
    if wrong.size:
        read_batch_header(data[:room], int(starts[wrong[0]]))
    return BatchColumns(
        data,
        starts,
        sizes,
        base_offsets,
        base_offsets + last_deltas,
        column("leader_epoch"),
        column("crc"),
        column("attributes"),
        column("base_timestamp"),
        column("max_timestamp"),
        column("producer_id"),
        column("producer_epoch"),
        counts,
    )
