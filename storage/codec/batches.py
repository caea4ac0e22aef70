"""Decoding of RecordBatch v2, the unit of Kafka's log.

The format is that of Kafka's ``DefaultRecordBatch`` and ``DefaultRecord``: a header of 61 bytes,
then records whose fields are varints. The CRC-32C covers everything from the attributes on.
``storage.codec.batch_encoding`` encodes batches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from storage.codec import wire
from storage.codec.errors import (
    ChecksumError,
    CodecError,
    TruncatedError,
    UnsupportedCompressionError,
)

HEADER_SIZE = 61
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

PREFIX = struct.Struct(">qiibI")
BODY_HEAD = struct.Struct(">hiqqqhii")
CRC_START = PREFIX.size
LENGTH_OFFSET = 12
"""The batch length field counts the bytes after itself: it excludes base offset and length."""

MAGIC = 2
_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
_DELETE_HORIZON = 0x40
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


Decompress = Callable[[int, bytes], bytes]
"""Decompresses the records section, given its codec number (``compression``) and bytes."""


class BatchRecord(NamedTuple):
    """A record of a batch; ``timestamp`` in wall-clock ms, a value of ``None`` is a tombstone."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of a batch. ``size`` is the batch in bytes; timestamps are wall-clock ms."""

    base_offset: int
    last_offset: int
    size: int
    leader_epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def compression(self) -> int:
        """0 for none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction of its producer id."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, such as transaction markers."""
        return bool(self.attributes & CONTROL)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the timestamp type is LogAppendTime: every record has ``max_timestamp``."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the log cleaner may drop tombstones and markers; stored as base timestamp."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None


@dataclass(frozen=True, slots=True)
class Batch(BatchHeader):
    """A batch with its records; compaction may have removed some or all of them."""

    records: tuple[BatchRecord, ...]


class Marker(NamedTuple):
    """The control record that ends a transaction."""

    committed: bool
    coordinator_epoch: int


def compute_max_timestamp(batch: BatchHeader, records: Sequence[BatchRecord]) -> int:
    """The max timestamp (wall-clock ms) of a batch that is reduced to ``records``."""
    if batch.is_log_append_time or not records:
        return batch.max_timestamp
    return max(record.timestamp for record in records)


def read_batch_header(data: bytes, pos: int = 0) -> BatchHeader:
    """Read the header of a batch that lies entirely in ``data``, without checking its CRC."""
    left = len(data) - pos
    if left < HEADER_SIZE:
        raise TruncatedError(f"a batch header has {HEADER_SIZE} bytes, {left} left at {pos}")
    base_offset, length, leader_epoch, magic, crc = PREFIX.unpack_from(data, pos)
    attributes, last_delta, *rest = BODY_HEAD.unpack_from(data, pos + CRC_START)
    if magic != MAGIC:
        raise CodecError(f"batch at {pos} has message format v{magic}, only v2 can be read")
    size = length + LENGTH_OFFSET
    if size < HEADER_SIZE or last_delta < 0 or rest[-1] < 0:
        raise CodecError(f"batch at {pos} has an invalid header")
    if size > left:
        raise TruncatedError(f"batch at {pos} has {size} bytes, {left} are left")
    return BatchHeader(
        base_offset, base_offset + last_delta, size, leader_epoch, crc, attributes, *rest
    )


def check_crc(data: bytes, pos: int, header: BatchHeader) -> None:
    """Raise ``ChecksumError`` unless the bytes of the batch match the CRC in its header."""
    actual = crc32c.crc32c(memoryview(data)[pos + CRC_START : pos + header.size])
    if actual != header.crc:
        raise ChecksumError(
            f"batch at offset {header.base_offset} has CRC {actual:08x}, not {header.crc:08x}"
        )


def decode_batch(data: bytes, pos: int = 0, *, decompress: Decompress | None = None) -> Batch:
    """Decode the batch at a position and verify its CRC; the next batch is ``size`` bytes on."""
    header = read_batch_header(data, pos)
    check_crc(data, pos, header)
    records = data[pos + HEADER_SIZE : pos + header.size]
    what = f"batch at offset {header.base_offset}"
    if header.compression:
        records = _decompress(what, header.compression, records, decompress)
    try:
        decoded = _decode_records(header, records)
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(what, error) from None
    return Batch(
        header.base_offset,
        header.last_offset,
        header.size,
        header.leader_epoch,
        header.crc,
        header.attributes,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
        decoded,
    )


def decode_marker(record: BatchRecord) -> Marker | None:
    """Decode a transaction marker; ``None`` for control records of other types."""
    key, value = record.key or b"", record.value or b""
    if len(key) < 4:
        raise TruncatedError(f"control record at offset {record.offset} has no type")
    control_type = int.from_bytes(key[2:4], "big")
    if control_type > 1:
        return None
    if len(value) < 6:
        raise TruncatedError(f"marker at offset {record.offset} has no coordinator epoch")
    return Marker(control_type == 1, int.from_bytes(value[2:6], "big", signed=True))


def _decompress(
    what: str, compression: int, records: bytes, decompress: Decompress | None
) -> bytes:
    name = _CODECS.get(compression)
    if name is None:
        raise UnsupportedCompressionError(f"{what} has unknown compression {compression}")
    if decompress is None:
        raise UnsupportedCompressionError(f"{what} is compressed with {name}")
    return decompress(compression, records)


def _decode_records(header: BatchHeader, data: bytes) -> tuple[BatchRecord, ...]:
    wire.check_count(data, 0, header.count, 7)
    records = []
    pos = 0
    last = header.base_offset - 1
    for _ in range(header.count):
        length, pos = wire.read_zigzag(data, pos)
        end = pos + length
        if length < 0 or end > len(data):
            raise TruncatedError(f"record at byte {pos} has {length} bytes")
        record = _decode_record(header, data, pos, end)
        if not last < record.offset <= header.last_offset:
            raise CodecError(f"record offset {record.offset} is out of order or out of range")
        last = record.offset
        records.append(record)
        pos = end
    if pos != len(data):
        raise CodecError(f"{len(data) - pos} bytes follow the last record")
    return tuple(records)


def _decode_record(header: BatchHeader, data: bytes, pos: int, end: int) -> BatchRecord:
    delta, pos = wire.read_zigzag(data, pos + 1, 10)
    offset_delta, pos = wire.read_zigzag(data, pos)
    key, pos = _read_nullable(data, pos)
    value, pos = _read_nullable(data, pos)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    count, pos = wire.read_zigzag(data, pos)
    if count:
        wire.check_count(data, pos, count, 2)
        headers, pos = _read_headers(data, pos, count)
    if pos != end:
        raise CodecError(f"record at byte {pos} does not end at byte {end}")
    if header.attributes & _LOG_APPEND_TIME:
        timestamp = header.max_timestamp
    else:
        timestamp = header.base_timestamp + delta
    return BatchRecord(header.base_offset + offset_delta, timestamp, key, value, headers)


def _read_nullable(data: bytes, pos: int) -> tuple[bytes | None, int]:
    length, pos = wire.read_zigzag(data, pos)
    if length == -1:
        return None, pos
    return wire.take(data, pos, length), pos + length


def _read_headers(
    data: bytes, pos: int, count: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    headers = []
    for _ in range(count):
        name, pos = _read_nullable(data, pos)
        value, pos = _read_nullable(data, pos)
        if name is None:
            raise CodecError(f"record header before byte {pos} has no name")
        headers.append((name.decode(), value))
    return tuple(headers), pos
