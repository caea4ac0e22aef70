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
"""What ``data`` of columns ends with, so that a varint can be read at the end of the last batch."""

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
    """One entry a batch in every array; ``starts`` and ``sizes`` are bytes of ``data``.

    ``data`` holds the batches and ``PADDING``. Offsets and timestamps (wall ms) are int64, the
    flags are bool, everything else int64 too.
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
        """Whether every record of a batch has the time of its append."""
        return (self.attributes & _LOG_APPEND_TIME).astype(bool)

    @property
    def are_transactional(self) -> BoolArray:
        """Whether a batch belongs to a transaction; so do the markers that end one."""
        return (self.attributes & _TRANSACTIONAL).astype(bool)

    @property
    def are_control(self) -> BoolArray:
        """Whether the record of a batch is a marker."""
        return (self.attributes & _CONTROL).astype(bool)


def read_batch_columns(batches: Sequence[bytes]) -> BatchColumns:
    """The headers of batches that each are whole bytes; no CRC is looked at.

    Raises ``CodecError`` as ``read_batch_header`` does, for the first batch that is wrong.
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
    """The headers of the batches that a block consists of, as a segment file holds them.

    Raises ``CodecError`` as ``read_batch_columns`` does, also where a batch is not whole.
    """
    starts, end = _find_batches(block)
    if end != len(block):
        read_batch_header(block, end)
    return _read_columns(block + PADDING, np.array(starts, dtype=np.int64), len(starts))


def split_beginning(chunk: bytes) -> BatchColumns:
    """As ``split_block``, of as many whole batches as the chunk begins with, be it none."""
    starts, end = _find_batches(chunk)
    return _read_columns(chunk[:end] + PADDING, np.array(starts, dtype=np.int64), len(starts))


def _find_batches(block: bytes) -> tuple[list[int], int]:
    """Where whole batches begin, and where the last of them ends."""
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
    """Raises ``ChecksumError`` for the first batch that has not the bytes that were written."""
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
    # Every position of the data seen as a header, of which only those at the starts are copied.
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
