"""Validation of produced batches, with the error codes of Kafka 4.3."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable

import cramjam
import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.runtime.loop.slices import run_at_once
from gateway.topics.log.batch_lookup import find_record
from gateway.topics.log.produced import InvalidTimestamp, ProducedBatch, check_batch, check_sent
from gateway.topics.topic_catalogue import TopicDataError
from model.errors import ErrorCode
from storage.codec.batches import HEADER_SIZE, decode_batch, read_batch_header
from storage.codec.wire import encode_zigzag
from tests.unit.gateway.topics.store_rig import NOW_MS, a_batch

INVALID_TIMESTAMP = 32
NOT_TRANSACTIONAL = 53
HOUR_MS = 3_600_000

LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, MAX_TIMESTAMP, COUNT = 8, 16, 17, 21, 23, 35, 57
PRODUCER_ID, SEQUENCE = 43, 53


def changed(data: bytes, position: int, layout: str, value: int) -> bytes:
    """The batch with one field changed, and a CRC that fits."""
    out = bytearray(data)
    struct.pack_into(layout, out, position, value)
    if position >= ATTRIBUTES:
        struct.pack_into(">I", out, CRC, crc32c.crc32c(bytes(out[ATTRIBUTES:])))
    return bytes(out)


def with_records(records: bytes, count: int = 1) -> bytes:
    """A batch of which only the header is as it should be."""
    data = a_batch(*[b"v"] * count)[:HEADER_SIZE] + records
    data = changed(data, LENGTH, ">i", len(data) - 12)
    return changed(data, COUNT, ">i", count)


def check(data: bytes, version: int = 9, max_bytes: int = 1 << 20) -> ProducedBatch:
    return check_batch(check_sent(data, version), max_bytes, NOW_MS)


def compute_code(call: Callable[[], object]) -> int:
    """The error code of a rejection, which must have a message; 0 if accepted."""
    try:
        call()
    except TopicDataError as error:
        return error.code if error.message else -99
    return 0


BATCH = a_batch(b"a", b"b")
REFUSED = {
    "nothing": (b"", 87),
    "less than a header": (BATCH[:30], 87),
    "not whole": (BATCH[:-1], 87),
    "two batches": (BATCH + BATCH, 87),
    "zeros behind": (BATCH + bytes(70), 2),
    "format v0": (changed(BATCH, MAGIC, ">b", 0), 87),
    "format v1": (changed(BATCH, MAGIC, ">b", 1), 87),
    "format v3": (changed(BATCH, MAGIC, ">b", 3), 2),
    "length 5": (changed(BATCH, LENGTH, ">i", 5), 2),
    "length 40": (changed(BATCH, LENGTH, ">i", 40), 2),
    "length -1": (changed(BATCH, LENGTH, ">i", -1), 2),
    "base offset 5": (changed(BATCH, 0, ">q", 5), 87),
    "another CRC": (changed(BATCH, CRC, ">I", 1), 2),
    "control batch": (changed(BATCH, ATTRIBUTES, ">h", 0x20), 87),
    "transactional": (changed(BATCH, ATTRIBUTES, ">h", 0x10), NOT_TRANSACTIONAL),
    "compression 5": (changed(BATCH, ATTRIBUTES, ">h", 5), -1),
    "count 3 of 2": (changed(changed(BATCH, COUNT, ">i", 3), LAST_DELTA, ">i", 2), 87),
    "count 1 of 2": (changed(changed(BATCH, COUNT, ">i", 1), LAST_DELTA, ">i", 0), 87),
    "count 0": (with_records(b"", 0), 87),
    "count -1": (changed(BATCH, COUNT, ">i", -1), 87),
    "last delta 5": (changed(BATCH, LAST_DELTA, ">i", 5), 87),
    "last delta -1": (changed(BATCH, LAST_DELTA, ">i", -1), 87),
    "record too short": (with_records(b"\x06\0\0\0\0\0\0"), 87),
    "record of negative length": (with_records(b"\x01\0\0\0\0\0\0"), 87),
    "record beyond the batch": (with_records(b"\x7e\0\0\0\x02k\x02v\0"), 87),
    "key beyond the record": (with_records(b"\x10\0\0\0\x7ek\x02v\0"), 87),
    "key of length -2": (with_records(b"\x10\0\0\0\x03k\x02v\0"), 87),
    "many headers": (with_records(b"\x12\0\0\0\x02k\x02v\x7e\0"), 87),
    "header without a name": (with_records(b"\x14\0\0\0\x02k\x02v\x02\x01\0"), 87),
    "producer without sequence": (changed(BATCH, PRODUCER_ID, ">q", 7), None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    data, code = REFUSED[name]
    if code is None:
        data, code = changed(data, SEQUENCE, ">i", -1), 87
    assert compute_code(lambda: check(data)) == code


def test_a_batch_passes_as_it_is() -> None:
    batch = check(BATCH)
    assert batch.data == BATCH
    assert (batch.header.count, batch.header.size) == (2, len(BATCH))
    assert check(BATCH + b"abc").data == BATCH, "what cannot be a batch is cut off, as in Kafka"
    with_header = with_records(b"\x16\0\0\0\x02k\x02v\x02\x02h\x01"[:12])
    assert check(with_header).header.count == 1


def test_size_is_bounded() -> None:
    assert compute_code(lambda: check(BATCH, max_bytes=len(BATCH) - 1)) == 10
    assert check(BATCH, max_bytes=len(BATCH)).data == BATCH


def test_zstd_needs_version_7() -> None:
    data = changed(BATCH, ATTRIBUTES, ">h", 4)
    assert compute_code(lambda: check_sent(data, 6)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check_sent(data, 7) == data


def test_records_from_the_future_are_named() -> None:
    assert check(a_batch(timestamp_ms=NOW_MS + HOUR_MS)).header.count == 1
    late = a_batch(b"a", b"b", timestamp_ms=NOW_MS + HOUR_MS + 1)
    with pytest.raises(InvalidTimestamp) as refused:
        check(late)
    assert (refused.value.code, refused.value.indexes) == (INVALID_TIMESTAMP, (0, 1))


def test_the_largest_timestamp_is_that_of_the_records() -> None:
    """Kafka does not trust it either; a wrong one would break lookups by timestamp."""
    for claimed in (5, NOW_MS + 100):
        batch = check(changed(BATCH, MAX_TIMESTAMP, ">q", claimed))
        assert batch.header.max_timestamp == NOW_MS
        assert decode_batch(batch.data).max_timestamp == NOW_MS


def test_log_append_time_becomes_create_time() -> None:
    batch = check(changed(BATCH, ATTRIBUTES, ">h", 8))
    assert not batch.header.is_log_append_time
    assert [record.timestamp for record in decode_batch(batch.data).records] == [NOW_MS, NOW_MS]


def test_a_bomb_is_not_unpacked() -> None:
    """A gigabyte of zeros in a megabyte: refused by nothing here, and never unpacked."""
    packed = changed(with_records(gzip.compress(bytes(50 << 20))), ATTRIBUTES, ">h", 1)
    batch = check(packed)
    assert batch.data == packed
    assert find(batch.at(0), NOW_MS) == (0, NOW_MS)


def test_the_offset_is_put_in() -> None:
    stored = check(BATCH).at(1 << 40)
    header = read_batch_header(stored)
    assert (header.base_offset, header.last_offset) == (1 << 40, (1 << 40) + 1)
    assert header.leader_epoch == 0
    assert stored[16:] == BATCH[16:]


@given(st.binary(max_size=200), st.integers(0, 2**16))
def test_no_bytes_do_more_than_refuse(tail: bytes, seed: int) -> None:
    """Any header and any bytes after it: an error code, never another exception."""
    data = bytearray(with_records(tail))
    for at in range(0, len(data), 7):
        if seed >> (at % 16) & 1 and not LENGTH <= at < ATTRIBUTES:
            data[at] ^= seed & 0xFF
    struct.pack_into(">I", data, CRC, crc32c.crc32c(bytes(data[ATTRIBUTES:])))
    compute_code(lambda: check(bytes(data)))
    compute_code(lambda: check(tail))
    compute_code(lambda: check(bytes(data[: seed % (len(data) + 1)])))


# ------------------------------------------------------------------------------ compressed batches


def find(data: bytes, timestamp: int) -> tuple[int, int] | None:
    return run_at_once(find_record(data, timestamp))


def compressed(codec: int, *timestamps: int) -> bytes:
    """A batch of records of these timestamps, compressed (1 gzip, 2 snappy, 3 lz4, 4 zstd)."""
    records = b""
    for index, timestamp in enumerate(timestamps):
        body = b"\0" + encode_zigzag(timestamp - NOW_MS) + encode_zigzag(index) + b"\x02k\x02v\0"
        records += encode_zigzag(len(body)) + body
    packed = {
        1: cramjam.gzip.compress,
        2: cramjam.snappy.compress_raw,
        3: cramjam.lz4.compress,
        4: cramjam.zstd.compress,
    }[codec](records)
    data = with_records(bytes(packed), len(timestamps))
    data = changed(data, MAX_TIMESTAMP, ">q", max(timestamps))
    return changed(data, ATTRIBUTES, ">h", codec)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_timestamp_is_found_in_a_compressed_batch(codec: int) -> None:
    data = check(compressed(codec, NOW_MS, NOW_MS + 50, NOW_MS + 20)).at(100)
    assert find(data, NOW_MS) == (100, NOW_MS)
    assert find(data, NOW_MS + 1) == (101, NOW_MS + 50)
    assert find(data, NOW_MS + 51) is None


def test_what_cannot_be_unpacked_is_found_at_its_beginning() -> None:
    data = check(changed(BATCH, ATTRIBUTES, ">h", 1)).at(7)
    assert find(data, NOW_MS - 5) == (7, NOW_MS)
