"""What a producer may append: the checks of one RecordBatch v2, and its bytes as they are stored.

Codes are those of Kafka 4.3 (``ProduceRequest.validateRecords``, ``UnifiedLog``,
``LogValidator``). Compressed records are unpacked only for a compacted topic, which has to be
looked into again and again, and within bounds, so that a small request cannot make the server work
for a large one; else only their header is checked. Kafka unpacks them always and refuses records
that do not fit their header, or that are from the future, also there.
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
    """Records from the future, by their index in the batch."""

    def __init__(self, indexes: tuple[int, ...]) -> None:
        super().__init__(
            ErrorCode.INVALID_TIMESTAMP, "records have timestamps more than an hour ahead"
        )
        self.indexes = indexes


@dataclass(frozen=True, slots=True)
class ProducedBatch:
    """One batch that passed the checks: its bytes alone, and what its header says."""

    data: bytes
    header: BatchHeader

    def at(self, offset: int) -> bytes:
        """The bytes as they are stored at ``offset``; neither field is covered by the CRC."""
        data = bytearray(self.data)
        _BASE_OFFSET.pack_into(data, 0, offset)
        struct.pack_into(">i", data, _LEADER_EPOCH_AT, 0)
        return bytes(data)


def check_sent(records: bytes | None, version: int) -> bytes:
    """The one batch in the records of a Produce request, cut off what follows it.

    Raises ``TopicDataError`` unless it is exactly one of format v2, in a compression that
    ``version`` of Produce allows.
    """
    size = _compute_batch_size(records or b"")
    if records is None or size is None:
        raise _invalid("a produce request has one record batch for each partition, this has none")
    magic = records[_MAGIC_AT]
    if magic > 2:
        raise _corrupt(f"no message format v{magic} is known")
    if magic < 2:
        raise _invalid(f"message format v{magic} is refused, produce in v2")
    if size < HEADER_SIZE:
        raise _corrupt(f"a record batch has {HEADER_SIZE} bytes or more, not {size}")
    if version < 7 and records[_CRC_START + 1] & 7 == ZSTD:
        raise TopicDataError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or later"
        )
    if _compute_batch_size(records[size:]) is not None:
        raise _invalid("a produce request has one record batch for each partition, this has more")
    return records if size == len(records) else records[:size]


def check_batch(
    data: bytes, max_bytes: int, now_ms: int, *, is_compacted: bool = False
) -> ProducedBatch:
    """The batch, if it may be appended; raises ``TopicDataError`` with Kafka's code."""
    if len(data) > max_bytes:
        raise TopicDataError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record batch has {len(data)} bytes, at most {max_bytes} are taken "
            "(message.max.bytes)",
        )
    if struct.unpack_from(">q", data)[0] != 0:
        raise _invalid("the base offset of a batch that is produced is 0")
    try:
        header = read_batch_header(data)
        check_crc(data, 0, header)
    except ChecksumError as error:
        raise _corrupt(str(error)) from None
    except CodecError as error:
        raise _invalid(str(error)) from None
    _check_header(header)
    if header.count > RECORDS_MAX:
        # Producers cut a batch in two for this, as often as it takes (KIP-126).
        raise _too_large(f"the record batch has {header.count} records, {RECORDS_MAX} are taken")
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
        raise _too_large(f"{error} in a compacted topic") from None
    except CodecError as error:
        raise _invalid(str(error)) from None


def _check_header(header: BatchHeader) -> None:
    if header.is_control:
        raise _invalid("clients do not write control records")
    if header.is_transactional:
        # What Kafka says where the request has no transactional id; to a client it is final.
        raise TopicDataError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not supported here"
        )
    if header.compression > ZSTD:
        raise TopicDataError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"no compression {header.compression} is known"
        )
    if header.count < 1 or header.last_offset != header.count - 1:
        raise _invalid(f"{header.count} records do not end at offset delta {header.last_offset}")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise _invalid("a batch with a producer id has a sequence number")


def _check_records(data: bytes, header: BatchHeader, timestamp_limit: int) -> int:
    """The largest timestamp of the records, which is not believed as the header has it.

    Raises unless the records are whole, as many as the header says, and not from the future.
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
        raise _invalid(f"the batch has records that cannot be read: {error}") from None
    if pos != len(data):
        raise _invalid(f"{len(data) - pos} bytes follow the last record")
    if late:
        raise InvalidTimestamp(tuple(late))
    return max_timestamp


def _check_record(data: bytes, pos: int, end: int) -> int:
    """The timestamp delta of a record; its offset delta is not believed by Kafka either."""
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
            raise CodecError("a record header has no name")
        value, pos = wire.read_zigzag(data, pos + name)
        pos += max(value, 0)
    return pos


def _with_create_time(data: bytes, max_timestamp: int) -> bytes:
    """The batch with CreateTime, which every topic has here, and its true largest timestamp."""
    changed = bytearray(data)
    changed[_CRC_START + 1] &= ~_LOG_APPEND_TIME
    struct.pack_into(">q", changed, _MAX_TIMESTAMP_AT, max_timestamp)
    struct.pack_into(">I", changed, _CRC_AT, crc32c.crc32c(memoryview(changed)[_CRC_START:]))
    return bytes(changed)


def _compute_batch_size(data: bytes) -> int | None:
    """The size of the first batch, or ``None`` where there is no whole one."""
    if len(data) < _MAGIC_AT + 1:
        return None
    length = _LENGTH_AND_EPOCH.unpack_from(data, 8)[0]
    if length < _LEGACY_OVERHEAD:
        raise _corrupt(f"a record batch says that it has {length} bytes")
    size = int(length) + _SIZE_PREFIX
    return size if size <= len(data) else None


def _invalid(message: str) -> TopicDataError:
    return TopicDataError(ErrorCode.INVALID_RECORD, message)


def _too_large(message: str) -> TopicDataError:
    return TopicDataError(ErrorCode.MESSAGE_TOO_LARGE, message)


def _corrupt(message: str) -> TopicDataError:
    return TopicDataError(ErrorCode.CORRUPT_MESSAGE, message)
