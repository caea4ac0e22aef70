"""The codec of record batches: the segments of a real Kafka, and damaged input."""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import partial

import cramjam
import crc32c
import pytest

from storage.codec.batch_encoding import encode_batch, encode_marker, reencode_batch
from storage.codec.batches import (
    HEADER_SIZE,
    Batch,
    BatchRecord,
    Marker,
    decode_batch,
    decode_marker,
    read_batch_header,
)
from storage.codec.errors import (
    ChecksumError,
    CodecError,
    TruncatedError,
    UnsupportedCompressionError,
)
from storage.log.compression import decompress
from tests.support.batches import decode_batches
from tests.support.storage.golden import golden_batches, logged_records, segments

RECORDS = [(b"key", b"value"), (b"gone", None), (b"k" * 70, b"v" * 9000)]


def all_batches() -> list[tuple[int, int, bytes, Batch]]:
    """The partition, position, bytes and content of every batch in the broker's segments."""
    found = []
    for partition, data in segments().items():
        pos = 0
        for batch in decode_batches(data):
            found.append((partition, pos, data[pos : pos + batch.size], batch))
            pos += batch.size
        assert pos == len(data)
    return found


def test_golden_batches_say_what_kafka_says_of_them() -> None:
    expected = {(line["partition"], line["position"]): line for line in golden_batches()}
    batches = all_batches()
    assert len(batches) == len(expected) > 2500
    for partition, pos, data, batch in batches:
        line = expected[partition, pos]
        assert batch.size == line["sizeInBytes"] == len(data)
        assert (batch.base_offset, batch.last_offset) == (line["baseOffset"], line["lastOffset"])
        assert batch.count == len(batch.records) == line["count"]
        assert (batch.crc, batch.leader_epoch) == (line["crc"], line["partitionLeaderEpoch"])
        assert (batch.producer_id, batch.producer_epoch) == (
            line["producerId"],
            line["producerEpoch"],
        )
        assert batch.base_sequence == line["baseSequence"]
        assert batch.is_transactional == line["isTransactional"]
        assert batch.is_control == line["isControl"]
        assert batch.max_timestamp == line["maxTimestamp"]
        assert batch.compression == 0
        assert batch.delete_horizon_ms is None


def test_golden_records_are_in_the_batches() -> None:
    found = {
        (partition, record.offset): (record.timestamp, record.key, record.value)
        for partition, _, _, batch in all_batches()
        for record in batch.records
        if not batch.is_control
    }
    for line in logged_records():
        timestamp, key, value = found.pop((line["partition"], line["offset"]))
        assert timestamp == line["timestamp"]
        assert key == bytes.fromhex(line["key"])
        assert value == (None if line["value"] is None else bytes.fromhex(line["value"]))
    assert not found


def test_golden_batches_are_encoded_to_the_same_bytes() -> None:
    fresh = markers = 0
    for _, _, data, batch in all_batches():
        assert reencode_batch(batch) == data
        if batch.is_control:
            markers += 1
            marker = decode_marker(batch.records[0])
            assert marker is not None
            encoded = encode_marker(
                batch.base_offset,
                batch.max_timestamp,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                committed=marker.committed,
                coordinator_epoch=marker.coordinator_epoch,
            )
        elif batch.base_timestamp == batch.max_timestamp:
            fresh += 1
            encoded = encode_batch(
                batch.base_offset,
                [(record.key or b"", record.value) for record in batch.records],
                batch.max_timestamp,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                is_transactional=batch.is_transactional,
            )
        else:
            continue
        assert encoded == data
    assert markers == 20
    assert fresh == len(golden_batches()) - markers - 2, "two hold records of two instants"


def test_markers() -> None:
    for committed in (True, False):
        data = encode_marker(
            5, 7, producer_id=1, producer_epoch=2, committed=committed, coordinator_epoch=3
        )
        batch = decode_batch(data)
        assert decode_marker(batch.records[0]) == Marker(committed, 3)
        assert (batch.base_offset, batch.last_offset, batch.base_sequence) == (5, 5, -1)
    assert decode_marker(BatchRecord(0, 0, b"\0\0\0\x02", b"")) is None
    with pytest.raises(TruncatedError):
        decode_marker(BatchRecord(0, 0, b"\0\0\0", b""))
    with pytest.raises(TruncatedError):
        decode_marker(BatchRecord(0, 0, b"\0\0\0\x01", b"\0"))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8190, 8191, 8192, 100_000, 400_000])
def test_lengths_around_the_steps_of_a_varint(size: int) -> None:
    records = [(b"k" * size, b"v"), (b"k", b"v" * size), (b"k", None)]
    batch = decode_batch(encode_batch(3, records, 9))
    assert [(record.key, record.value) for record in batch.records] == records
    assert [record.offset for record in batch.records] == [3, 4, 5]


def test_many_records() -> None:
    records = [(b"%d" % index, None) for index in range(20_000)]
    batch = decode_batch(encode_batch(0, records, 9))
    assert batch.last_offset == 19_999
    assert [(record.key, record.value) for record in batch.records] == records


def test_gaps_headers_and_times_survive() -> None:
    batch = Batch(
        *(10, 20, 0, 4, 0, 0, 1000, 1500, 7, 8, 9, 3),
        records=(
            BatchRecord(12, 1000, None, b"v", (("h", None), ("i", b"x"))),
            BatchRecord(13, 400, b"k", None),
            BatchRecord(20, 1500, b"", b""),
        ),
    )
    found = decode_batch(reencode_batch(batch))
    assert found.records == batch.records
    assert (found.base_offset, found.last_offset, found.leader_epoch) == (10, 20, 4)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (7, 8, 9)


def test_records_have_the_time_of_the_append_where_the_batch_says_so() -> None:
    batch = Batch(
        *(0, 0, 0, 0, 0, 0x08, 1000, 2000, -1, -1, -1, 1),
        records=(BatchRecord(0, 2000, b"k", b"v"),),
    )
    assert decode_batch(reencode_batch(batch)).records[0].timestamp == 2000


def test_truncation_at_every_byte() -> None:
    data = encode_batch(0, RECORDS[:2], 5) + encode_batch(2, RECORDS[:1], 5)
    size = read_batch_header(data).size
    for end in range(1, len(data)):
        if end == size:
            assert len(list(decode_batches(data[:end]))) == 1
            continue
        with pytest.raises(CodecError):
            list(decode_batches(data[:end]))


def test_any_flipped_bit_after_the_crc_is_noticed() -> None:
    data = encode_batch(0, RECORDS[:2], 5)
    for position in range(21, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        with pytest.raises(ChecksumError):
            decode_batch(bytes(damaged))


def test_damage_under_a_right_crc_raises_nothing_else() -> None:
    data = encode_batch(0, [(b"key", b"value"), (b"k", None)], 5)
    for position in range(len(data)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] = byte
            damaged[17:21] = struct.pack(">I", crc32c.crc32c(damaged[21:]))
            with suppress(CodecError):
                list(decode_batches(bytes(damaged)))


def test_other_formats_are_refused_by_name() -> None:
    damaged = bytearray(encode_batch(0, RECORDS, 5))
    damaged[16] = 1
    with pytest.raises(CodecError, match="message format v1"):
        decode_batch(bytes(damaged))


def compress(data: bytes, codec: int, compressed: bytes) -> bytes:
    """Compress the records section of an uncompressed batch."""
    body = bytearray(data[21:HEADER_SIZE])
    body[1] |= codec
    body += compressed
    return (
        data[:8]
        + struct.pack(">i", len(body) + 9)
        + data[12:17]
        + struct.pack(">I", crc32c.crc32c(body))
        + body
    )


def xerial(data: bytes) -> bytes:
    blocks = [bytes(cramjam.snappy.compress_raw(data[i : i + 4096])) for i in range(0, 9100, 4096)]
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed


PLAIN = encode_batch(0, RECORDS, 5)
COMPRESSED = {
    "gzip": (1, bytes(cramjam.gzip.compress(PLAIN[HEADER_SIZE:]))),
    "snappy": (2, bytes(cramjam.snappy.compress_raw(PLAIN[HEADER_SIZE:]))),
    "snappy of Java": (2, xerial(PLAIN[HEADER_SIZE:])),
    "lz4": (3, bytes(cramjam.lz4.compress(PLAIN[HEADER_SIZE:]))),
    "zstd": (4, bytes(cramjam.zstd.compress(PLAIN[HEADER_SIZE:]))),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_batches(name: str) -> None:
    codec, records = COMPRESSED[name]
    data = compress(PLAIN, codec, records)
    assert decode_batch(data, decompress=decompress).records == decode_batch(PLAIN).records
    with pytest.raises(UnsupportedCompressionError, match=f"is compressed with {name.split()[0]}"):
        decode_batch(data)
    with pytest.raises(UnsupportedCompressionError):
        reencode_batch(decode_batch(data, decompress=decompress))
    with pytest.raises(CodecError, match="more than 9000 bytes"):
        decode_batch(data, decompress=partial(decompress, max_bytes=9000))


@pytest.mark.parametrize("name", COMPRESSED)
def test_damaged_compression(name: str) -> None:
    codec, records = COMPRESSED[name]
    for end in (0, 1, 12, 18, len(records) // 2, len(records) - 1):
        with pytest.raises(CodecError):
            decode_batch(compress(PLAIN, codec, records[:end]), decompress=decompress)


def test_a_bomb_stays_within_the_bound() -> None:
    bomb = bytes(cramjam.zstd.compress(bytes(50 << 20)))
    assert len(bomb) < 10_000
    with pytest.raises(CodecError, match="more than 1048576 bytes"):
        decompress(4, bomb, max_bytes=1 << 20)
    assert len(decompress(4, bomb)) == 50 << 20


def test_unknown_compression() -> None:
    with pytest.raises(UnsupportedCompressionError, match="unknown compression 5"):
        decode_batch(compress(PLAIN, 5, b""), decompress=decompress)
    with pytest.raises(UnsupportedCompressionError):
        decompress(5, b"")
