"""Encoding of RecordBatch v2: new batches, transaction markers, and rewritten batches.

``storage.codec.batches`` describes the format.
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
"""Lookup table of small lengths and offset deltas; larger ones are computed."""


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
    """Encode keys and values as an uncompressed batch, at consecutive offsets, one timestamp.

    The bytes equal those that Kafka's group coordinator writes; its base sequence is always 0.
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
    """Encode the records section of a batch, starting with offset delta ``first_delta``."""
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
    """``encode_batch`` for records that are already encoded."""
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
    """Encode a transaction marker: a control batch of one record that commits or aborts."""
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
    """Encode some records of a batch as a new uncompressed batch; offsets and times are kept.

    The new batch keeps producer id and epoch and adjusts the base sequence. If it is taken out of
    a transaction, it has no producer.
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
    """Encode a decoded, uncompressed batch back to its bytes, with its offset gaps and headers."""
    if batch.compression:
        raise UnsupportedCompressionError("cannot re-encode a compressed batch")
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
    """Replace the records section of a batch.

    ``records`` holds ``count`` encoded records, compressed by the codec that the header names.
    """
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
