from __future__ import annotations

import random
import struct
from itertools import pairwise

import cramjam
import crc32c
import numpy as np
import pytest

from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import HEADER_SIZE, BatchHeader, decode_batch, read_batch_header
from storage.codec.errors import ChecksumError, CodecError, TruncatedError
from storage.columnar import record_columns
from storage.columnar.batch_columns import (
    BatchColumns,
    check_crcs,
    read_batch_columns,
    split_block,
)
from tests.support.storage.columns import decode_rows, read_rows
from tests.support.storage.commit_log import MIXED, make_commit_log
from tests.support.storage.golden import segments

SEGMENTS = segments()
SCALARS = ("base_timestamps", "max_timestamps", "producer_ids", "producer_epochs", "counts")


def split(segment: bytes) -> list[bytes]:
    columns = split_block(segment)
    return [segment[a:b] for a, b in pairwise([*columns.starts.tolist(), len(segment)])]


def check_headers(columns: BatchColumns, headers: list[BatchHeader]) -> None:
    assert columns.base_offsets.tolist() == [header.base_offset for header in headers]
    assert columns.last_offsets.tolist() == [header.last_offset for header in headers]
    assert columns.leader_epochs.tolist() == [header.leader_epoch for header in headers]
    assert columns.sizes.tolist() == [header.size for header in headers]
    assert columns.crcs.tolist() == [header.crc for header in headers]
    assert columns.attributes.tolist() == [header.attributes for header in headers]
    assert columns.are_control.tolist() == [header.is_control for header in headers]
    assert columns.are_transactional.tolist() == [header.is_transactional for header in headers]
    for name in SCALARS:
        assert getattr(columns, name).tolist() == [getattr(h, name[:-1]) for h in headers]


@pytest.mark.parametrize("narrow", [1, 10, record_columns.NARROW, 1 << 30])
def test_columns_of_a_real_log_are_its_batches(
    narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_columns, "NARROW", narrow)
    batches = [batch for segment in SEGMENTS.values() for batch in split(segment)]
    check_headers(read_batch_columns(batches), [read_batch_header(batch) for batch in batches])
    assert read_rows(batches) == decode_rows(batches)


def test_a_block_is_split_where_its_batches_end() -> None:
    for segment in SEGMENTS.values():
        headers, pos = [], 0
        while pos < len(segment):
            headers.append(read_batch_header(segment, pos))
            pos += headers[-1].size
        check_headers(split_block(segment), headers)


def test_long_batches_among_short_ones() -> None:
    batches = list(make_commit_log(MIXED, 3000))
    batches.append(encode_batch(7, [(b"key-%d" % n, b"v" * n) for n in range(300)], 5))
    assert read_rows(batches) == decode_rows(batches)


def test_nothing_has_no_columns() -> None:
    assert read_rows([]) == []
    assert len(split_block(b"").starts) == 0


def compress(batch: bytes, codec: int) -> bytes:
    records = batch[HEADER_SIZE:]
    match codec:
        case 1:
            packed = bytes(cramjam.gzip.compress(records))
        case 2:
            packed = bytes(cramjam.snappy.compress_raw(records))
        case 3:
            packed = bytes(cramjam.lz4.compress(records))
        case _:
            packed = bytes(cramjam.zstd.compress(records))
    (attributes,) = struct.unpack_from(">h", batch, 21)
    body = struct.pack(">h", attributes | codec) + batch[23:HEADER_SIZE] + packed
    head = batch[:8] + struct.pack(">i", len(body) + 9) + batch[12:17]
    return head + struct.pack(">I", crc32c.crc32c(body)) + body


def test_compressed_batches_among_others() -> None:
    batches = list(make_commit_log(MIXED, 1000))
    mixed = [compress(batch, n % 5) if n % 5 else batch for n, batch in enumerate(batches)]
    assert read_rows(mixed) == decode_rows(mixed) == decode_rows(batches)


def test_a_record_with_headers_is_marked() -> None:
    body = b"\0\0\0\x02k\x02v\x02\x02h\x01"
    records = bytes([2 * len(body)]) + body
    plain = encode_batch(0, [(b"k", b"v")], 5)
    content = plain[21:HEADER_SIZE] + records
    head = plain[:8] + struct.pack(">i", len(content) + 9) + plain[12:17]
    batch = head + struct.pack(">I", crc32c.crc32c(content)) + content
    assert decode_batch(batch).records[0].headers == (("h", None),)
    columns = read_batch_columns([plain, batch])
    records_read = record_columns.read_record_columns(columns, lambda _, data: data)
    assert records_read.have_headers.tolist() == [False, True]
    assert read_rows([plain, batch]) == decode_rows([plain, batch])


def test_a_damaged_batch_is_refused_as_if_it_were_alone() -> None:
    chance = random.Random(5)
    batches = list(make_commit_log(MIXED, 500))
    for _ in range(300):
        index = chance.randrange(len(batches))
        damaged = bytearray(batches[index])
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        # Right checksum over changed content: what only reading the records can find.
        if damaged[12:17] == batches[index][12:17] and chance.random() < 0.7:
            damaged[17:21] = crc32c.crc32c(bytes(damaged[21:])).to_bytes(4, "big")
        changed = [*batches[:index], bytes(damaged), *batches[index + 1 :]]
        try:
            expected: object = decode_rows(changed)
        except CodecError as error:
            expected = (type(error), str(error))
        try:
            found: object = read_rows(changed)
        except CodecError as error:
            found = (type(error), str(error))
        if isinstance(expected, tuple) and isinstance(found, tuple):
            assert found[0] is expected[0] or "follow the batch" in found[1]
        else:
            assert found == expected or "follow" in str(found)


def test_a_wrong_checksum_names_its_batch() -> None:
    batches = list(make_commit_log(MIXED, 500))
    last = bytearray(batches[-1])
    last[-1] ^= 1
    with pytest.raises(
        ChecksumError, match=f"batch at offset {read_batch_header(last).base_offset}"
    ):
        check_crcs(read_batch_columns([*batches[:-1], bytes(last)]))


@pytest.mark.parametrize("cut", [1, 30, 70])
def test_a_block_that_ends_within_a_batch_is_refused(cut: int) -> None:
    block = b"".join(make_commit_log(MIXED, 100))
    with pytest.raises(TruncatedError):
        split_block(block[:-cut])


def test_other_message_formats_are_refused() -> None:
    old = bytearray(encode_batch(0, [(b"k", b"v")], 5))
    old[16] = 1
    with pytest.raises(CodecError, match="message format v1"):
        split_block(encode_batch(0, [(b"k", b"v")], 5) + bytes(old))


def test_timestamps_beyond_64_bits_are_refused() -> None:
    batch = bytearray(encode_batch(0, [(b"k", b"v")], 5))
    body = b"\0" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\0\x02k\x02v\0"
    batch[HEADER_SIZE:] = bytes([2 * len(body)]) + body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = crc32c.crc32c(bytes(batch[21:])).to_bytes(4, "big")
    with pytest.raises(CodecError, match="timestamp overflows"):
        read_rows([bytes(batch)])


def test_keys_are_slices() -> None:
    columns = read_batch_columns([encode_batch(3, [(b"a", b"1"), (b"", None)], 5)])
    records = record_columns.read_record_columns(columns, lambda _, data: data)
    assert records.keys() == [b"a", b""]
    assert records.value_lengths.tolist() == [1, -1]
    assert records.offsets.dtype == np.int64
