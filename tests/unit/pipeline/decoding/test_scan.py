"""A file scanned in parts gives every batch and every damage once, wherever it is split."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding import scan
from pipeline.decoding.byte_source import BytesInMemory
from pipeline.decoding.scan import Damage, ScanPosition, scan_batches
from tests.support.pipeline.blocks import make_log

LOG = make_log(12, count=4)
STARTS = [sum(map(len, LOG[:index])) for index in range(len(LOG))]
WHOLE = b"".join(LOG)

Seen = list[tuple[int, str]]


def read(data: bytes, begin: int = 0, end: int | None = None) -> Seen:
    found: Seen = []
    for piece in scan_batches(BytesInMemory(data), begin, end):
        if isinstance(piece, Damage):
            found.append((piece.offset, f"{piece.problem}, {piece.size} bytes"))
        else:
            found += [(offset, "") for offset in piece.base_offsets.tolist()]
    return found


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_parts_give_every_batch_once(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(WHOLE)]
    parts = [each for begin, end in pairwise(edges) for each in read(WHOLE, begin, end)]
    assert parts == [(4 * index, "") for index in range(12)]


@given(
    st.lists(st.integers(0, len(WHOLE)), max_size=4),
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(max_size=20)), max_size=4),
    st.integers(0, 200),
)
def test_parts_of_a_damaged_file_give_what_the_whole_gives(
    cuts: list[int], changes: list[tuple[int, bytes]], missing: int
) -> None:
    data = bytearray(WHOLE)
    for at, change in changes:
        data[at : at + len(change)] = change
    damaged = bytes(data[: len(data) - missing])
    edges = [0, *sorted(min(cut, len(damaged)) for cut in cuts), len(damaged)]
    parts = [each for begin, end in pairwise(edges) for each in read(damaged, begin, end)]
    assert parts == read(damaged)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(1, 255)), max_size=3))
def test_batches_that_nobody_touched_are_read(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    touched = set()
    for at, change in changes:
        data[at] ^= change
        touched.add(max(index for index, start in enumerate(STARTS) if start <= at))
    found = [offset for offset, damage in read(bytes(data)) if not damage]
    assert {4 * index for index in range(12) if index not in touched} <= set(found)
    assert found == sorted(set(found))


def test_blocks_smaller_than_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 61, 100, 700):
        monkeypatch.setattr(scan, "BLOCK_BYTES", size)
        assert read(WHOLE) == [(4 * index, "") for index in range(12)]
        assert read(WHOLE[: STARTS[5] + 70])[-1] == (20, "truncated, 70 bytes")


def test_a_walk_begins_where_another_has_come_to() -> None:
    source = BytesInMemory(WHOLE)
    rest = list(scan_batches(source, STARTS[7], start=ScanPosition(STARTS[7], 28)))
    assert [piece.base_offsets.tolist() for piece in rest if not isinstance(piece, Damage)] == [
        [28, 32, 36, 40, 44]
    ]


def test_what_looks_like_many_batches_is_given_up() -> None:
    garbage = b"\0" * 16 + b"\x02" + b"\0" * 3 + b"\x01"
    found = read(LOG[0] + garbage * 20_000)
    assert found[0] == (0, "")
    assert len(found) == 2
