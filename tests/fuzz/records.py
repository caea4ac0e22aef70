"""Batches of records and what classic members say of themselves, right and slightly wrong."""

from __future__ import annotations

import random
import struct

import cramjam
import crc32c

from tests.fuzz.wire_bytes import varint

_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4

SUBSCRIPTIONS = (
    b"\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x00",
    b"\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x01\x00\x06orders"
    b"\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01",
    b"\x00\x03\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x01\x00\x06orders"
    b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x02r1",
    b"\x00\x00\x00\x00\x00\x02\x00\x06orders\x00\x06events\xff\xff\xff\xff",
    b"",
    b"\x00\x00",
    b"\x00\x01\x7f\xff\xff\xff",
    b"\xff\xff\x00\x00\x00\x00",
    b"\x00\x03\x00\x00\x00\x02\x00\x06orders\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x00"
    b"\xff\xff\xff\xff\xff\xff",
)
ASSIGNMENTS = (
    b"\x00\x01\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01"
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff",
    b"",
    b"\x00\x01\x00\x00\x00\x01\x00\x06orders\x7f\xff\xff\xff",
    b"\x00" * 10_000,
)


def _zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def make_record(number: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0" + _zigzag(0) + _zigzag(number)
    for part in (key, value):
        body += _zigzag(-1) if part is None else _zigzag(len(part)) + part
    body += _zigzag(0)
    return _zigzag(len(body)) + body


def compress(codec: int, data: bytes) -> bytes:
    """With the codec of a batch's attributes; as it is with one that there is not."""
    match codec:
        case 1:
            return bytes(cramjam.gzip.compress(data))
        case 2:
            return bytes(cramjam.snappy.compress_raw(data))
        case 3:
            return bytes(cramjam.lz4.compress(data))
        case 4:
            return bytes(cramjam.zstd.compress(data))
    return data


def seal_batch(
    records: bytes,
    count: int,
    *,
    attributes: int = 0,
    last_delta: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    times: tuple[int, int] = (1, 1),
    magic: int = 2,
    base_offset: int = 0,
    excess: int = 0,
    crc_error: int = 0,
) -> bytes:
    """A batch of version 2 around encoded records; ``excess`` is added to its length."""
    delta = count - 1 if last_delta is None else last_delta
    body = struct.pack(">hiqqqhii", attributes, delta, *times, *producer, count) + records
    head = struct.pack(">qiib", base_offset, len(body) + 9 + excess, -1, magic)
    return head + struct.pack(">I", crc32c.crc32c(body) ^ crc_error) + body


def make_batch(rng: random.Random, producers: list[tuple[int, int]]) -> bytes:
    """A batch, mostly sound."""
    count = rng.choice((1, 1, 2, 5))
    records = b"".join(
        make_record(number, rng.choice((None, b"k")), rng.choice((None, b"", b"v" * 100)))
        for number in range(count)
    )
    if rng.random() < 0.02:
        records = make_record(0, None, bytes(20 << 20))
        count = 1
    attributes = rng.choice((0, 0, 0, _GZIP, _SNAPPY, _LZ4, _ZSTD, 5, 7, 8, 16, 32, 0x48))
    packed = compress(attributes & 7, records)
    if len(packed) > 1 << 20:
        packed = packed[:1000]
    if rng.random() < 0.7:
        return seal_batch(packed, count, attributes=attributes)
    identity, epoch = rng.choice((*producers, (-1, -1), (1, 0), (2**63 - 1, 5)))
    return seal_batch(
        packed,
        rng.choice((count, count, 0, -1, 2**31 - 1)),
        attributes=attributes,
        last_delta=rng.choice((None, None, count, -1, 2**31 - 1)),
        producer=(identity, epoch, rng.choice((-1, 0, 1, 2**31 - 1))),
        times=(rng.choice((1, 2**62, -1)), rng.choice((1, -1, 2**62))),
        magic=rng.choice((2, 2, 2, 0, 1, 3, -1)),
        base_offset=rng.choice((0, 0, 5, -1, 2**63 - 1)),
        excess=rng.choice((0, 0, 0, 1, -1, 100)),
        crc_error=rng.choice((0, 0, 0, 1)),
    )
