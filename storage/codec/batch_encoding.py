"""Records to RecordBatch v2: batches of the group coordinator, markers, and batches written again.

The format is in ``storage.codec.batches``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import crc32c

from storage.codec import wire
from storage.codec.batches import (
    BODY_HEAD,
    CONTROL,
    CRC_START,
    LENGTH_OFFSET,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PREFIX,
    TRANSACTIONAL,
    Batch,
    BatchHeader,
    BatchRecord,
)
from storage.codec.errors import UnsupportedCompressionError

_ZIGZAG = tuple(wire.encode_zigzag(value) for value in range(1 << 13))
"""Lengths and offset deltas up to here are looked up; longer ones are computed."""


def encode_batch(
    base_offset: int,
    records: Sequence[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    *,
    leader_epoch: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = 0,
    is_transactional: bool = False,
) -> bytes:
    """A batch of keys and values at consecutive offsets with one timestamp, not compressed.

    The same bytes as Kafka's group coordinator writes, whose base sequence is always 0.
    """
    return frame_records(
        base_offset,
        encode_records(records),
        len(records),
        timestamp_ms,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )


def encode_records(records: Iterable[tuple[bytes, bytes | None]], first_delta: int = 0) -> bytes:
    """What a batch has behind its header, or the part of it from its record ``first_delta`` on."""
    parts: list[bytes] = []
    append = parts.append
    zigzag = _ZIGZAG
    delta = first_delta
    for key, value in records:
        try:
            if value is None:
                body = b"\0\0%b%b%b\x01\0" % (zigzag[delta], zigzag[len(key)], key)
            else:
                body = b"\0\0%b%b%b%b%b\0" % (
                    zigzag[delta],
                    zigzag[len(key)],
                    key,
                    zigzag[len(value)],
                    value,
                )
            append(zigzag[len(body)])
        except IndexError:
            body = _encode_body(0, delta, key, value, ())
            append(wire.encode_zigzag(len(body)))
        append(body)
        delta += 1
    return b"".join(parts)


def frame_records(
    base_offset: int,
    records: bytes,
    count: int,
    timestamp_ms: int,
    *,
    leader_epoch: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = 0,
    is_transactional: bool = False,
) -> bytes:
    """``encode_batch`` of records that are encoded already."""
    return _frame(
        base_offset,
        count - 1,
        records,
        count,
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL if is_transactional else 0,
        timestamps=(timestamp_ms, timestamp_ms),
        producer=(producer_id, producer_epoch, base_sequence),
    )


def encode_marker(
    base_offset: int,
    timestamp_ms: int,
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    leader_epoch: int = 0,
) -> bytes:
    """The control batch that commits or aborts a producer's transaction: one offset."""
    key = struct.pack(">hh", 0, 1 if committed else 0)
    body = _encode_body(0, 0, key, struct.pack(">hi", 0, coordinator_epoch), ())
    return _frame(
        base_offset,
        0,
        wire.encode_zigzag(len(body)) + body,
        1,
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL | CONTROL,
        timestamps=(timestamp_ms, timestamp_ms),
        producer=(producer_id, producer_epoch, NO_SEQUENCE),
    )


def select_records(
    batch: Batch, records: Sequence[BatchRecord], *, is_transactional: bool
) -> bytes:
    """A batch of some of another's records, at their own offsets and times, not compressed.

    It is of the same producer and sequence, or of none where it is taken out of a transaction.
    """
    first, last = records[0], records[-1]
    attributes = TRANSACTIONAL if is_transactional else 0
    producer_id, producer_epoch = batch.producer_id, batch.producer_epoch
    sequence = batch.base_sequence
    if batch.is_transactional and not is_transactional:
        producer_id, producer_epoch, sequence = NO_PRODUCER_ID, NO_PRODUCER_EPOCH, 0
    elif producer_id != NO_PRODUCER_ID and sequence != NO_SEQUENCE:
        sequence = (sequence + first.offset - batch.base_offset) & 0x7FFFFFFF
    parts: list[bytes] = []
    for record in records:
        body = _encode_body(
            record.timestamp - first.timestamp,
            record.offset - first.offset,
            record.key,
            record.value,
            record.headers,
        )
        parts += (wire.encode_zigzag(len(body)), body)
    return _frame(
        first.offset,
        last.offset - first.offset,
        b"".join(parts),
        len(records),
        leader_epoch=batch.leader_epoch,
        attributes=attributes,
        timestamps=(first.timestamp, max(record.timestamp for record in records)),
        producer=(producer_id, producer_epoch, sequence),
    )


def reencode_batch(batch: Batch) -> bytes:
    """The bytes of a decoded batch that was not compressed: gaps, headers, times and all."""
    if batch.compression:
        raise UnsupportedCompressionError("a compressed batch cannot be encoded again")
    parts: list[bytes] = []
    for record in batch.records:
        delta = 0 if batch.is_log_append_time else record.timestamp - batch.base_timestamp
        offset_delta = record.offset - batch.base_offset
        body = _encode_body(delta, offset_delta, record.key, record.value, record.headers)
        parts += (wire.encode_zigzag(len(body)), body)
    return _frame(
        batch.base_offset,
        batch.last_offset - batch.base_offset,
        b"".join(parts),
        len(batch.records),
        leader_epoch=batch.leader_epoch,
        attributes=batch.attributes,
        timestamps=(batch.base_timestamp, batch.max_timestamp),
        producer=(batch.producer_id, batch.producer_epoch, batch.base_sequence),
    )


def replace_records(header: BatchHeader, records: bytes, count: int, max_timestamp: int) -> bytes:
    """The batch with other records: ``count`` of them, encoded, and compressed as it says."""
    return _frame(
        header.base_offset,
        header.last_offset - header.base_offset,
        records,
        count,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes,
        timestamps=(header.base_timestamp, max_timestamp),
        producer=(header.producer_id, header.producer_epoch, header.base_sequence),
    )


def _encode_nullable(data: bytes | None) -> bytes:
    return b"\x01" if data is None else wire.encode_zigzag(len(data)) + data


def _encode_body(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> bytes:
    parts = [
        b"\0",
        wire.encode_zigzag(timestamp_delta),
        wire.encode_zigzag(offset_delta),
        _encode_nullable(key),
        _encode_nullable(value),
        wire.encode_zigzag(len(headers)),
    ]
    for name, data in headers:
        parts += (_encode_nullable(name.encode()), _encode_nullable(data))
    return b"".join(parts)


def _frame(
    base_offset: int,
    last_delta: int,
    records: bytes,
    count: int,
    *,
    leader_epoch: int,
    attributes: int,
    timestamps: tuple[int, int],
    producer: tuple[int, int, int],
) -> bytes:
    body = BODY_HEAD.pack(attributes, last_delta, *timestamps, *producer, count) + records
    length = len(body) + CRC_START - LENGTH_OFFSET
    crc = crc32c.crc32c(body)
    return PREFIX.pack(base_offset, length, leader_epoch, MAGIC, crc) + body
