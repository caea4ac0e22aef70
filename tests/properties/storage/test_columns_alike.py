"""Columns hold what the decoder of single batches gives, for any batches of any shape."""

from __future__ import annotations

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.codec.batch_encoding import encode_marker, reencode_batch
from storage.codec.batches import Batch, BatchRecord
from storage.codec.errors import CodecError
from storage.columnar import record_columns
from storage.columnar.batch_columns import PADDING, read_batch_columns, split_block
from tests.support.storage.columns import decode_rows, read_rows

SIZES = st.integers(0, 20) | st.sampled_from([63, 64, 8191, 8192])
BYTES = SIZES.flatmap(lambda size: st.binary(min_size=size, max_size=size))
TIMES = st.integers(0, 1 << 62)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A batch as compaction may have left it: with gaps, with any times, even empty."""
    base = draw(st.integers(0, 1 << 40))
    deltas = sorted(draw(st.sets(st.integers(0, 1 << 20), max_size=12)))
    base_time = draw(TIMES)
    headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)))
    records = tuple(
        BatchRecord(
            base + delta,
            draw(st.just(base_time) | TIMES),
            draw(st.none() | BYTES),
            draw(st.none() | BYTES),
            tuple(draw(headers)) if draw(st.integers(0, 9)) == 0 else (),
        )
        for delta in deltas
    )
    last = base + draw(st.integers(deltas[-1] if deltas else 0, (1 << 20) + 1))
    attributes = draw(st.sampled_from([0, 0x08, 0x10, 0x40]))
    max_time = draw(TIMES)
    return reencode_batch(
        Batch(base, last, 0, 3, 0, attributes, base_time, max_time, 7, 1, 0, len(records), records)
    )


MARKERS = st.builds(
    encode_marker,
    st.integers(0, 1 << 40),
    TIMES,
    producer_id=st.integers(0, 1 << 40),
    producer_epoch=st.integers(0, 100),
    committed=st.booleans(),
    coordinator_epoch=st.integers(0, 100),
)


@settings(max_examples=150)
@given(st.lists(batches() | MARKERS, max_size=8), st.sampled_from([1, 3, 100]))
def test_columns_hold_what_each_batch_holds(log: list[bytes], narrow: int) -> None:
    with mock.patch.object(record_columns, "NARROW", narrow):
        assert read_rows(log) == decode_rows(log)
    block = b"".join(log)
    assert split_block(block).starts.tolist() == read_batch_columns(log).starts.tolist()
    assert split_block(block).data == block + PADDING


@settings(max_examples=150)
@given(st.lists(batches(), min_size=1, max_size=4), st.data())
def test_changed_bytes_are_refused_or_read_alike(log: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(log) - 1))
    damaged = bytearray(log[index])
    damaged[data.draw(st.integers(57, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    log[index] = bytes(damaged)
    with mock.patch("storage.codec.batches.check_crc"):
        try:
            expected = decode_rows(log)
        except CodecError:
            expected = None
        try:
            columns = read_batch_columns(log)
            rows = record_columns.read_record_columns(columns, lambda _, raw: raw)
        except CodecError:
            assert expected is None
            return
    assert expected is not None
    assert rows.offsets.tolist() == [record.offset for _, record in expected]
    assert rows.keys() == [record.key or b"" for _, record in expected]
