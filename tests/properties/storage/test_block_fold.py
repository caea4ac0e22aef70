"""Folding by blocks leaves what folding batch by batch leaves, however the blocks are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.columnar.batch_columns import read_batch_columns, split_block
from storage.columnar.block_fold import BlockFold
from storage.columnar.record_columns import read_record_columns
from storage.log.compression import decompress
from tests.support.storage.commit_log import MIXED, make_commit_log
from tests.support.storage.drawn_logs import LOGS, Write, encode, fold_batches, lay_out
from tests.support.storage.golden import segments


def fold_blocks(
    blocks: Iterable[Sequence[bytes]],
) -> tuple[dict[bytes, bytes], dict[tuple[int, bytes], bytes]]:
    """``latest`` and ``pending`` of a log that is given in blocks."""
    folded = BlockFold()
    latest: dict[bytes, bytes] = {}
    for block in blocks:
        batches = read_batch_columns(block)
        for key, packed in folded.apply(batches, read_record_columns(batches, decompress)).items():
            if packed is None:
                latest.pop(key, None)
            else:
                latest[key] = packed
    return latest, folded.pending()


@settings(max_examples=300)
@given(LOGS, st.integers(0, 2), st.integers(1, 4), st.integers(1, 20))
def test_blocks_of_any_size(writes: list[Write], gap: int, per_batch: int, size: int) -> None:
    log = list(encode(lay_out(writes, gap), per_batch))
    blocks = [log[start : start + size] for start in range(0, len(log), size)]
    assert fold_blocks(blocks) == fold_batches(log)


def test_a_real_log() -> None:
    for segment in segments().values():
        batches = split_block(segment)
        ends = (batches.starts + batches.sizes).tolist()
        log = [segment[a:b] for a, b in zip(batches.starts.tolist(), ends, strict=True)]
        blocks = [log[start : start + 7] for start in range(0, len(log), 7)]
        assert fold_blocks(blocks) == fold_batches(log)


def test_a_long_log() -> None:
    log = list(make_commit_log(MIXED, 5000))
    assert fold_blocks([log[:30], log[30:]]) == fold_batches(log)
