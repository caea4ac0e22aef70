"""Random logs of one partition: legal, and as odd as versions and clients of Kafka make them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import cramjam
import crc32c

from model.ids import GroupId, TopicName
from model.log.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from storage.codec.batch_encoding import encode_marker, reencode_batch
from storage.codec.batches import (
    BODY_HEAD,
    HEADER_SIZE,
    LENGTH_OFFSET,
    PREFIX,
    Batch,
    BatchRecord,
    decode_batch,
)
from storage.codec.record_codec import encode_key, encode_value

PRODUCERS = (7, 8, 70_000)
GROUPS = tuple(GroupId(f"g{number}") for number in range(4))
START_MS = 1_700_000_000_000
_LEGACY_TYPE = b"\x00\x00"
_TRANSACTIONAL, _LOG_APPEND_TIME, _DELETE_HORIZON = 0x10, 0x08, 0x40
_CODECS: Final[dict[int, Callable[[bytes], bytes]]] = {
    1: lambda data: bytes(cramjam.gzip.compress(data)),
    2: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    3: lambda data: bytes(cramjam.lz4.compress(data)),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}


def make_odd_log(rng: random.Random) -> list[bytes]:
    """Gaps, batches without records, markers alone, codecs, times that go back, old and unknown
    versions, headers, producers, leader epochs, offsets beyond what 31 and 40 bits hold."""
    return list(_make_batches(rng))


def _make_batches(rng: random.Random) -> Iterator[bytes]:
    offset = rng.choice((0, 0, 5, (1 << 31) - 20, 1 << 40))
    now_ms, leader_epoch = START_MS, 0
    for number in range(rng.randrange(1, 50)):
        now_ms += rng.choice((0, 1, 1_000, -500))
        leader_epoch += rng.random() < 0.1
        offset += rng.randrange(1, 4) if rng.random() < 0.15 else 0
        if rng.random() < 0.2:
            yield encode_marker(
                offset,
                now_ms,
                producer_id=rng.choice(PRODUCERS),
                producer_epoch=rng.randrange(3),
                committed=rng.random() < 0.6,
                coordinator_epoch=3,
                leader_epoch=leader_epoch,
            )
            offset += 1
            continue
        count = rng.choice((0, 1, 1, 2, 5, 30)) if number else rng.choice((1, 2, 5))
        batch = _make_batch(rng, offset, count, now_ms, leader_epoch)
        offset = batch.last_offset + 1
        data = reencode_batch(batch)
        yield compress(data, rng.choice(list(_CODECS))) if count and rng.random() < 0.3 else data


def _make_batch(
    rng: random.Random, offset: int, count: int, now_ms: int, leader_epoch: int
) -> Batch:
    records: list[BatchRecord] = []
    at = offset
    for _ in range(count):
        at += rng.random() < 0.1
        key, value = _make_pair(rng, now_ms)
        stamp_ms = now_ms + rng.choice((0, 0, 5, -7))
        headers = (("h", b"x"), ("", None)) if rng.random() < 0.05 else ()
        records.append(BatchRecord(at, stamp_ms, key, value, headers))
        at += 1
    last = max(at - 1, offset) + (rng.random() < 0.1)
    producer_id = rng.choice((-1, -1, *PRODUCERS))
    has_producer = producer_id >= 0
    attributes = _TRANSACTIONAL if has_producer and rng.random() < 0.7 else 0
    base_ms = records[0].timestamp if records else now_ms
    if rng.random() < 0.2:
        attributes, base_ms = attributes | _DELETE_HORIZON, now_ms + 86_400_000
    attributes |= _LOG_APPEND_TIME if rng.random() < 0.1 else 0
    highest_ms = max((record.timestamp for record in records), default=now_ms)
    producer = (producer_id, 2, 0) if has_producer else (-1, -1, -1)
    head = (offset, last, 0, leader_epoch, 0, attributes, base_ms, highest_ms)
    return Batch(*head, *producer, count, records=tuple(records))


def _make_pair(rng: random.Random, now_ms: int) -> tuple[bytes, bytes | None]:
    group = rng.choice(GROUPS)
    offset_key = encode_key(OffsetCommitKey(group, TopicName("t"), rng.randrange(3)))
    kind = rng.random()
    value: bytes | None
    if kind < 0.6:
        committed = OffsetCommitValue(rng.randrange(1 << 33), -1, "", now_ms)
        key, value = offset_key, encode_value(committed, rng.choice((0, 1, 2, 3, 4)))
    elif kind < 0.7:
        key = _LEGACY_TYPE + offset_key[2:]
        value = b"\x00\x01%b\x00\x00%b%b" % (
            rng.randrange(99).to_bytes(8, "big"),
            now_ms.to_bytes(8, "big"),
            b"\xff" * 8,
        )
    elif kind < 0.8:
        key = encode_key(GroupMetadataKey(group))
        value = encode_value(GroupMetadataValue("consumer", 3, None, None, now_ms, ()))
    elif kind < 0.9:
        key, value = b"\x00\x4d" + bytes([rng.randrange(3)]), b"\x00\x09a type of another version"
    else:
        key, value = encode_key(GroupMetadataKey(group)), b"\x00\x63a value of another version"
    return key, None if rng.random() < 0.25 else value


def compress(data: bytes, codec: int) -> bytes:
    """The batch with its records compressed."""
    batch = decode_batch(data)
    records = _CODECS[codec](data[HEADER_SIZE:])
    numbers = list(BODY_HEAD.unpack_from(data, PREFIX.size))
    numbers[0] = batch.attributes | codec
    body = BODY_HEAD.pack(*numbers) + records
    length = PREFIX.size + len(body) - LENGTH_OFFSET
    crc = crc32c.crc32c(body)
    return PREFIX.pack(batch.base_offset, length, batch.leader_epoch, 2, crc) + body
