"""Blocks of batches as Arrow, without Spark: Kafka's own log, all versions, and damage."""

from __future__ import annotations

import gzip
import struct
from typing import Any

import pyarrow as pa
import pytest

from pipeline import schema
from pipeline.decoding.blocks import decode_blocks
from storage.codec.batch_encoding import encode_batch
from tests.pipeline.tables.golden_rows import compute_decoded, compute_golden_row, parse_json
from tests.support.pipeline.blocks import START_MS, make_batch, make_commits, make_log
from tests.support.storage.golden import filled_records, golden_batches, golden_lines, segments

COMMITS = pa.schema([schema.RECORDS.field(n) for n in ("offset", "group_id", "committed_offset")])


def rows_of(data: bytes) -> list[dict[str, Any]]:
    return [parse_json(row) for row in decode_blocks(data).to_pylist()]


def differences(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (row[name], value) for name, value in wanted.items() if row[name] != value}


def test_every_record_of_a_broker_is_what_kafka_says() -> None:
    wanted = {(line["partition"], line["offset"]): line for line in golden_lines()}
    for partition, data in segments().items():
        for row in map(parse_json, decode_blocks(data, partition).to_pylist()):
            line = wanted.pop((partition, row["offset"]))
            assert not differences(row, compute_golden_row(line)), line
    assert not wanted


def test_every_batch_of_a_broker_is_what_kafka_says() -> None:
    wanted = {(line["partition"], line["baseOffset"]): line for line in golden_batches()}
    seen = set()
    for partition, data in segments().items():
        for row in decode_blocks(data, partition).to_pylist():
            line = wanted[partition, row["base_offset"]]
            assert row["partition_leader_epoch"] == line["partitionLeaderEpoch"]
            assert row["compression"] == line["compression"]
            assert row["timestamp_type"] == 0
            seen.add((partition, row["base_offset"]))
    assert seen == set(wanted)


def test_every_type_and_version_is_what_kafka_says() -> None:
    lines = filled_records()
    for line, row in zip(lines, rows_of(make_batch(lines)), strict=True):
        decoded = compute_decoded(line)
        if (line["valueJson"] or {}).get("unknownTaggedFields"):
            decoded |= {"key_json": line["keyJson"]}
        assert not differences(row, decoded), line
        assert row["problem"] is None
        assert row["type_id"] == line["typeId"]


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 4096, 16_382, 16_383, 20_000])
def test_metadata_of_any_length(length: int) -> None:
    from model.ids import GroupId, TopicName
    from model.log.records import OffsetCommitKey, OffsetCommitValue
    from storage.codec.record_codec import encode_key, encode_value

    key = encode_key(OffsetCommitKey(GroupId("g"), TopicName("t"), 1))
    versions = (0, 1, 2, 3, 4)
    values = [
        encode_value(OffsetCommitValue(version, 9, "ä" * (length // 2), 5), version)
        for version in versions
    ]
    found = rows_of(encode_batch(0, [(key, value) for value in values], START_MS))
    assert [row["metadata"] for row in found] == ["ä" * (length // 2)] * 5
    assert [row["committed_offset"] for row in found] == list(versions)
    assert [row["leader_epoch"] for row in found] == [None, None, None, 9, 9]
    assert [row["problem"] for row in found] == [None] * 5


def test_columns_that_are_not_asked_for_are_not_there() -> None:
    found = decode_blocks(make_commits(5, 2), schema=COMMITS)
    assert found.to_pylist() == [
        {"offset": 5, "group_id": "g", "committed_offset": 5},
        {"offset": 6, "group_id": "g", "committed_offset": 6},
    ]


def test_no_bytes_are_no_rows() -> None:
    assert decode_blocks(b"").num_rows == 0
    assert decode_blocks(b"").schema == schema.RECORDS


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batches(codec: int) -> None:
    plain = make_commits(0, 500)
    assert [row | {"compression": "none"} for row in rows_of(compress(plain, codec))] == rows_of(
        plain
    )


def compress(batch: bytes, codec: int) -> bytes:
    import cramjam
    import crc32c

    body = batch[61:]
    packed = {
        1: gzip.compress,
        2: lambda data: bytes(cramjam.snappy.compress_raw(data)),
        3: lambda data: bytes(cramjam.lz4.compress(data)),
        4: lambda data: bytes(cramjam.zstd.compress(data)),
    }[codec](body)
    head = bytearray(batch[:61])
    head[22] |= codec
    head[8:12] = struct.pack(">i", 49 + len(packed))
    head[17:21] = struct.pack(">I", crc32c.crc32c(bytes(head[21:]) + packed))
    return bytes(head) + packed


# ------------------------------------------------------------------------------------ damage


def problems(data: bytes) -> list[tuple[int, str | None]]:
    return [(row["offset"], row["problem"]) for row in rows_of(data)]


def good(*offsets: int) -> list[tuple[int, str | None]]:
    return [(offset, None) for offset in offsets]


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def test_a_batch_with_another_crc_is_one_row() -> None:
    first, second, third = make_log(3, count=2)
    found = rows_of(first + flip(second, 80) + third)
    assert [(row["offset"], row["problem"]) for row in found] == [
        *good(0, 1),
        (2, schema.BAD_CRC),
        *good(4, 5),
    ]
    assert found[2]["value"] == flip(second, 80)
    assert found[2]["problem_detail"].startswith(f"byte {len(first)}: ")


@pytest.mark.parametrize("at", [8, 9, 10, 11])
def test_a_wrong_length_costs_its_batch_alone(at: int) -> None:
    first, second, third = make_log(3, count=2)
    found = problems(first + flip(second, at) + third)
    assert found[:2] == good(0, 1)
    assert found[2][0] == 2
    assert found[2][1] in schema.BATCH_PROBLEMS
    assert found[3:] == good(4, 5)


@pytest.mark.parametrize("left", [8, 11, 60, 61, 100])
def test_a_tail_that_is_cut_off_is_truncated(left: int) -> None:
    first, second = make_log(2, count=2)
    assert problems(first + second[:left]) == [*good(0, 1), (2, schema.TRUNCATED)]


def test_zeros_at_the_end_were_allocated_ahead() -> None:
    assert problems(make_commits(0, 2) + bytes(5000)) == good(0, 1)


def test_a_foreign_file_is_one_row() -> None:
    assert problems(b"hello, this is no log at all\n" * 1000) == [(0, schema.TRUNCATED)]


def test_records_that_are_not_what_the_batch_says_are_one_row() -> None:
    first, second, third = make_log(3, count=2)
    broken = reseal(second[:57] + struct.pack(">i", 3) + second[61:])
    assert problems(first + broken + third) == [
        *good(0, 1),
        (2, schema.UNREADABLE_BATCH),
        *good(4, 5),
    ]


def reseal(batch: bytes) -> bytes:
    import crc32c

    return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[21:])) + batch[21:]


def test_an_offset_that_leaps_costs_its_batch_alone() -> None:
    first, second, third = make_log(3, count=2)
    assert problems(first + flip(second, 0) + third) == [
        *good(0, 1),
        (2, schema.UNREADABLE_BATCH),
        *good(4, 5),
    ]


def test_offsets_that_go_back_are_one_row() -> None:
    first, second = make_log(2, count=2)
    found = problems(second + first + make_commits(4, 1))
    assert found == [(0, schema.UNREADABLE_BATCH), *good(0, 1), *good(4)]


KEY = b"\0\x01\0\x01g\0\x01t\0\0\0\x05"
VALUE = struct.pack(">hqibqb", 4, 7, -1, 1, 5, 0)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (b"\0\x63abc", b"\0\0x", schema.UNKNOWN_TYPE),
        (b"\x00", VALUE, schema.BAD_KEY),
        (b"", VALUE, schema.BAD_KEY),
        (KEY[:-1], VALUE, schema.BAD_KEY),
        (KEY + b"x", VALUE, schema.BAD_KEY),
        (KEY.replace(b"g", b"\xff"), VALUE, schema.BAD_KEY),
        (b"\0\x03\0\x05ab", b"\0\0", schema.BAD_KEY),
        (KEY, b"\0\x05" + VALUE[2:], schema.UNKNOWN_VERSION),
        (KEY, b"\xff\xff" + VALUE[2:], schema.BAD_VALUE),
        (KEY, b"\0", schema.BAD_VALUE),
        (KEY, VALUE[:-1], schema.BAD_VALUE),
        (KEY, VALUE + b"x", schema.BAD_VALUE),
        (KEY, VALUE[:14] + b"\xff\xff\xff" + VALUE[15:], schema.BAD_VALUE),
        (b"\0\x03\0\x01g", b"\0\0x", schema.BAD_VALUE),
    ],
)
def test_a_record_that_cannot_be_read_keeps_its_bytes(
    key: bytes, value: bytes, problem: str
) -> None:
    data = encode_batch(0, [(KEY, VALUE), (key, value), (KEY, None)], START_MS)
    before, row, after = rows_of(data)
    assert (row["key"], row["value"], row["problem"]) == (key, value, problem)
    assert row["problem_detail"]
    assert "\n" not in row["problem_detail"]
    assert (before["problem"], before["committed_offset"]) == (None, 7)
    assert (after["problem"], after["is_tombstone"], after["topic"]) == (None, True, "t")
