"""Logs to plant corruption in: a store as plain lists, and segments as bytes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import crc32c

from storage.codec.batches import Batch, decode_batch
from storage.log.compression import decompress
from storage.log.fold import PartitionFold
from storage.log_store import LatestEntry
from tests.golden.kafka_log import load_store
from tests.support.batches import decode_batches
from tests.support.memory import MemoryLogStore
from tests.support.storage.golden import segments
from tests.support.storage.plain_store import PlainStore, read_plain
from tests.support.storage.raw_log import RawLog
from tests.support.trimming import trim_once

BASE_OFFSET = slice(0, 8)
LENGTH = slice(8, 12)
LEADER_EPOCH = slice(12, 16)
MAGIC = 16
CRC = slice(17, 21)
ATTRIBUTES = slice(21, 23)
LAST_DELTA = slice(23, 27)
BASE_TIME = slice(27, 35)
MAX_TIME = slice(35, 43)
PRODUCER_ID = slice(43, 51)
PRODUCER_EPOCH = slice(51, 53)
SEQUENCE = slice(53, 57)
COUNT = slice(57, 61)
HEADER_SIZE = 61


@cache
def golden_stores() -> tuple[PlainStore, ...]:
    """Kafka's log as a store has it that was written to batch by batch: every partition."""
    whole = load_store()
    store = MemoryLogStore(whole.partitions)
    log = RawLog(store)
    store.write([], list(whole.side()))
    for number, data in segments().items():
        log.append(number, _split(data))
    log.make_durable()
    return tuple(read_plain(store, number) for number in segments())


@cache
def trimmed_stores() -> tuple[PlainStore, ...]:
    """The same, with the first half of each history compacted."""
    found = []
    for plain in golden_stores():
        if len(plain.log) < 6:
            continue
        store = MemoryLogStore(plain.partitions)
        log = RawLog(store)
        log.append(plain.number, (batch for _, batch in plain.log))
        log.make_durable()
        middle = plain.log[len(plain.log) // 2][0]
        while trim_once(store, plain.number, middle, 4096):
            pass
        found.append(read_plain(store, plain.number))
    return tuple(found)


def _split(data: bytes) -> Iterator[bytes]:
    position = 0
    for batch in decode_batches(data, decompress=decompress):
        yield data[position : position + batch.size]
        position += batch.size


class Meaning(NamedTuple):
    """What a log says: its records in their order, and what they come to."""

    records: list[tuple[Any, ...]]
    latest: dict[bytes, LatestEntry]
    pending: dict[int, dict[bytes, LatestEntry]]


def read_meaning(batches: Iterable[bytes]) -> Meaning:
    """Raises ``CodecError`` where it cannot be read."""
    fold = PartitionFold()
    records: list[tuple[Any, ...]] = []
    for data in batches:
        batch = decode_batch(data, decompress=decompress)
        fold.apply_batch(batch)
        records += ((batch.is_control, *record) for record in batch.records)
    return Meaning(records, fold.latest, fold.pending)


def compute_state(meaning: Meaning) -> list[tuple[Any, ...]]:
    """Keys, times and values alone, whatever their offsets."""
    waiting = [
        (number, key, entry.timestamp, entry.value)
        for number, entries in meaning.pending.items()
        for key, entry in entries.items()
    ]
    standing = [(-1, key, entry.timestamp, entry.value) for key, entry in meaning.latest.items()]
    return sorted(waiting + standing)


# --------------------------------------------------------------------------------------- batches


def put(data: bytes, where: slice, value: int) -> bytes:
    """A field of the header; numbers that are too large wrap around."""
    size = where.stop - where.start
    return (
        data[: where.start] + (value % (1 << 8 * size)).to_bytes(size, "big") + data[where.stop :]
    )


def get(data: bytes, where: slice) -> int:
    """A field of the header."""
    return int.from_bytes(data[where], "big", signed=True)


def make_right(data: bytes) -> bytes:
    """The length and the CRC of what the batch is now."""
    data = put(data, LENGTH, len(data) - LENGTH.stop)
    return put(data, CRC, crc32c.crc32c(data[CRC.stop :]))


def flip(data: bytes, chance: random.Random, start: int = 0) -> bytes:
    """One bit of the bytes from a position on."""
    position = chance.randrange(start, len(data))
    return change_byte(data, position, data[position] ^ 1 << chance.randrange(8))


def change_byte(data: bytes, position: int, byte: int) -> bytes:
    """Another byte at a position."""
    return data[:position] + bytes((byte & 0xFF,)) + data[position + 1 :]


def decode(data: bytes) -> Batch:
    """A batch that is whole."""
    return decode_batch(data, decompress=decompress)
