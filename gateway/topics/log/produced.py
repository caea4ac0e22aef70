"""Validates a produced record batch (format v2), and makes its bytes as stored.

The error codes are those of Kafka 4.3 (``ProduceRequest.validateRecords``, ``UnifiedLog``,
``LogValidator``). Unlike Kafka, compressed batches are decompressed for compacted topics only,
which need that again for every compaction, and within bounds, so that a small request cannot cause
large work. In other topics only the header of a compressed batch is checked; Kafka would also
reject records that contradict the header or are from the future.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import crc32c

from gateway.topics.log.batch_lookup import DECODED_BYTES_MAX, RECORDS_MAX
from gateway.topics.topic_catalogue import TopicDataError
from model.errors import ErrorCode
from storage.codec import wire
from storage.codec.batches import (
    HEADER_SIZE,
    NO_PRODUCER_ID,
    BatchHeader,
    check_crc,
    read_batch_header,
)
from storage.codec.errors import ChecksumError, CodecError, TooLargeError
from storage.log.compression import decompress

ZSTD: Final = 4

_LENGTH_AND_EPOCH = struct.Struct(">ii")
_BASE_OFFSET = struct.Struct(">q")
_SIZE_PREFIX = 12
_LEGACY_OVERHEAD = 14
_LEADER_EPOCH_AT = 12
_MAGIC_AT = 16
_CRC_AT = 17
_CRC_START = 21
_MAX_TIMESTAMP_AT = 35
_LOG_APPEND_TIME = 0x08
_TIMESTAMP_AFTER_MAX_MS = 3_600_000
_MIN_RECORD_SIZE = 7


class InvalidTimestamp(TopicDataError):
    """Records have timestamps too far in the future; ``indexes`` are their batch indexes."""

    def __init__(self, indexes: tuple[int, ...]) -> None:
        super().__init__(
            ErrorCode.INVALID_TIMESTAMP, "Records have timestamps more than an hour in the future."
        )
        self.indexes = indexes


@dataclass(frozen=True, slots=True)
class ProducedBatch:
    """A validated batch: its bytes and its parsed header."""

    data: bytes
    header: BatchHeader

    def at(self, offset: int) -> bytes:
        """The bytes as stored at ``offset``, with leader epoch 0; the CRC covers neither field."""
        data = bytearray(self.data)
        _BASE_OFFSET.pack_into(data, 0, offset)
        struct.pack_into(">i", data, _LEADER_EPOCH_AT, 0)
        return bytes(data)


def check_sent(records: bytes | None, version: int) -> bytes:
    """The one batch in the records of a Produce request, without trailing bytes.

    Raises ``TopicDataError`` unless there is exactly one batch, in format v2, with a compression
    that ``version`` of Produce allows.
    """
    size = _compute_batch_size(records or b"")
    if records is None or size is None:
        raise _invalid("Produce requests must have exactly one record batch per partition, not 0.")
    magic = records[_MAGIC_AT]
    if magic > 2:
        raise _corrupt(f"Unknown record batch magic {magic}.")
    if magic < 2:
        raise _invalid(f"Produce requests must have record batches of magic 2, not {magic}.")
    if size < HEADER_SIZE:
        raise _corrupt(f"The record batch has {size} bytes, fewer than its header's {HEADER_SIZE}.")
    if version < 7 and records[_CRC_START + 1] & 7 == ZSTD:
        raise TopicDataError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "ZSTD needs Produce version 7 or later."
        )
    if _compute_batch_size(records[size:]) is not None:
        raise _invalid("Produce requests must have exactly one record batch per partition.")
    return records if size == len(records) else records[:size]


def check_batch(
    data: bytes, max_bytes: int, now_ms: int, *, is_compacted: bool = False
) -> ProducedBatch:
    """Validate a batch before it is appended; raises ``TopicDataError`` with Kafka's code."""
    if len(data) > max_bytes:
        raise TopicDataError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch has {len(data)} bytes, which exceeds message.max.bytes "
            f"({max_bytes}).",
        )
    if struct.unpack_from(">q", data)[0] != 0:
        raise _invalid("The base offset of a produced record batch must be 0.")
    try:
        header = read_batch_header(data)
        check_crc(data, 0, header)
    except ChecksumError as error:
        raise _corrupt(str(error)) from None
    except CodecError as error:
        raise _invalid(str(error)) from None
    _check_header(header)
    if header.count > RECORDS_MAX:
        # On this error a producer splits the batch, repeatedly if necessary (KIP-126).
        raise _too_large(
            f"The record batch has {header.count} records, which exceeds {RECORDS_MAX}."
        )
    max_timestamp = header.max_timestamp
    if header.compression == 0:
        max_timestamp = _check_records(data, header, now_ms + _TIMESTAMP_AFTER_MAX_MS)
    elif is_compacted:
        unpacked = data[:HEADER_SIZE] + _unpack(data, header)
        max_timestamp = _check_records(unpacked, header, now_ms + _TIMESTAMP_AFTER_MAX_MS)
    elif max_timestamp > now_ms + _TIMESTAMP_AFTER_MAX_MS:
        raise InvalidTimestamp((0,))
    if max_timestamp != header.max_timestamp or header.is_log_append_time:
        data = _with_create_time(data, max_timestamp)
        header = read_batch_header(data)
    return ProducedBatch(data, header)


def _unpack(data: bytes, header: BatchHeader) -> bytes:
    records = data[HEADER_SIZE:]
    try:
        return decompress(header.compression, records, max_bytes=DECODED_BYTES_MAX)
    except TooLargeError as error:
        raise _too_large(f"Compacted topic: {error}") from None
    except CodecError as error:
        raise _invalid(str(error)) from None


def _check_header(header: BatchHeader) -> None:
    if header.is_control:
        raise _invalid("Clients are not allowed to write control records.")
    if header.is_transactional:
        # Kafka's error for a request without a transactional id; clients treat it as fatal.
        raise TopicDataError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactions are not supported."
        )
    if header.compression > ZSTD:
        raise TopicDataError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type {header.compression}."
        )
    if header.count < 1 or header.last_offset != header.count - 1:
        raise _invalid(
            f"{header.count} records do not match last offset delta {header.last_offset}."
        )
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise _invalid("A record batch with a producer id must have a sequence number.")


def _check_records(data: bytes, header: BatchHeader, timestamp_limit: int) -> int:
    """Validate the records, and compute their largest timestamp instead of trusting the header.

    Raises ``TopicDataError`` if a record is malformed or from the future, or if the count differs
    from the header's.
    """
    pos = HEADER_SIZE
    max_timestamp = -1
    late = []
    try:
        wire.check_count(data, pos, header.count, _MIN_RECORD_SIZE)
        for index in range(header.count):
            length, start = wire.read_zigzag(data, pos)
            pos = start + length
            if length < 0 or pos > len(data):
                raise CodecError(f"record {index} has {length} bytes")
            timestamp = header.base_timestamp + _check_record(data, start, pos)
            max_timestamp = max(max_timestamp, timestamp)
            if timestamp > timestamp_limit:
                late.append(index)
    except wire.BAD_INPUT as error:
        raise _invalid(f"The record batch has malformed records: {error}") from None
    if pos != len(data):
        raise _invalid(f"The record batch has {len(data) - pos} bytes after its last record.")
    if late:
        raise InvalidTimestamp(tuple(late))
    return max_timestamp


def _check_record(data: bytes, pos: int, end: int) -> int:
    """Validate a record and return its timestamp delta; like Kafka, ignore its offset delta."""
    timestamp_delta, pos = wire.read_zigzag(data, pos + 1, 10)
    _, pos = wire.read_zigzag(data, pos)
    for _ in range(2):
        length, pos = wire.read_zigzag(data, pos)
        if length < -1:
            raise CodecError(f"length {length}")
        pos += max(length, 0)
    headers, pos = wire.read_zigzag(data, pos)
    if headers:
        pos = _check_record_headers(data, pos, headers)
    if pos != end:
        raise CodecError(f"a record ends at byte {end}, its fields at byte {pos}")
    return timestamp_delta


def _check_record_headers(data: bytes, pos: int, count: int) -> int:
    wire.check_count(data, pos, count, 2)
    for _ in range(count):
        name, pos = wire.read_zigzag(data, pos)
        if name < 0:
            raise CodecError("a record header has a null key")
        value, pos = wire.read_zigzag(data, pos + name)
        pos += max(value, 0)
    return pos


def _with_create_time(data: bytes, max_timestamp: int) -> bytes:
    """The batch with timestamp type CreateTime, which all topics here have, and this timestamp."""
    changed = bytearray(data)
    changed[_CRC_START + 1] &= ~_LOG_APPEND_TIME
    struct.pack_into(">q", changed, _MAX_TIMESTAMP_AT, max_timestamp)
    struct.pack_into(">I", changed, _CRC_AT, crc32c.crc32c(memoryview(changed)[_CRC_START:]))
    return bytes(changed)


def _compute_batch_size(data: bytes) -> int | None:
    """The size of the first batch, or ``None`` if there is no whole one."""
    if len(data) < _MAGIC_AT + 1:
        return None
    length = _LENGTH_AND_EPOCH.unpack_from(data, 8)[0]
    if length < _LEGACY_OVERHEAD:
        raise _corrupt(f"The record batch length {length} is too small.")
    size = int(length) + _SIZE_PREFIX
    return size if size <= len(data) else None


def _invalid(message: str) -> TopicDataError:
    return TopicDataError(ErrorCode.INVALID_RECORD, message)


def _too_large(message: str) -> TopicDataError:
    return TopicDataError(ErrorCode.MESSAGE_TOO_LARGE, message)


def _corrupt(message: str) -> TopicDataError:
    return TopicDataError(ErrorCode.CORRUPT_MESSAGE, message)
