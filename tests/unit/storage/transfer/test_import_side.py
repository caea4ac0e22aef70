"""Fencing tokens after an import are above those that were given before, here or elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.core.state.tokens import compute_first_token
from model.ids import LogOffset, LogPartition
from model.log.side_records import SideRecord, TokenStartKey, TokenStartValue
from storage.codec.batch_encoding import encode_batch
from storage.rocks.rocks_opening import open_store
from storage.segments.folder import compute_segment_name, open_segments
from storage.side_codec import decode_side, encode_side
from storage.transfer.import_log import ImportOptions, import_segments
from storage.transfer.import_side import Pair, SideImport, compute_side
from tests.support.storage.appends import append, offset_key, offset_value

NOW_MS = 1_700_000_000_000


def encode_start(wall_ms: int) -> Pair:
    key, value = encode_side(SideRecord(TokenStartKey(), TokenStartValue(wall_ms)))
    assert value is not None
    return key, value


def find_start(side: list[Pair]) -> int:
    (value,) = (
        record.value
        for record in (decode_side(key, value) for key, value in side)
        if isinstance(record.key, TokenStartKey)
    )
    assert isinstance(value, TokenStartValue)
    return value.wall_ms


@pytest.mark.parametrize(("here", "there"), [(5, 9), (9, 5)], ids=["later there", "later here"])
def test_the_later_start_counts(here: int, there: int) -> None:
    merged = compute_side([encode_start(here)], SideImport(records=[encode_start(there)]), -1)
    assert find_start(merged) == 9


def test_a_start_that_one_of_them_has_counts() -> None:
    start = encode_start(9)
    assert find_start(compute_side([start], SideImport(), -1)) == 9
    assert find_start(compute_side([], SideImport(records=[start]), -1)) == 9


def test_a_log_that_is_hashed_anew_ends_lower_and_its_tokens_do_not(tmp_path: Path) -> None:
    """Bug: on a machine whose clock was behind, tokens were lower than before the import."""
    store = open_store(tmp_path / "store", partitions=7)
    append(store, {3: [(offset_key("here"), offset_value(1))]})
    store.sync()
    store.close()
    # Tokens are the offsets of that log, and so much above the time of its start.
    begin = 5_000_000
    pairs = [(offset_key(f"g{number}"), offset_value(5)) for number in range(20)]
    batch = encode_batch(begin, pairs, NOW_MS)
    folder = tmp_path / "log" / "__consumer_offsets-0"
    folder.mkdir(parents=True)
    (folder / compute_segment_name(begin)).write_bytes(batch)
    side = SideImport(records=[encode_start(NOW_MS)])

    options = ImportOptions(partitions=1, side=side)
    source = open_segments(tmp_path / "log")
    count, _ = import_segments(source, tmp_path / "store", options, lambda _: None)

    assert count.is_rehashed
    last = compute_first_token(NOW_MS, LogOffset(begin + len(pairs)))
    opened = open_store(tmp_path / "store", partitions=7)
    start_ms = find_start(list(opened.side()))
    for number in range(7):
        end = opened.next_offset(LogPartition(number))
        assert compute_first_token(start_ms, end) > last
    opened.close()
