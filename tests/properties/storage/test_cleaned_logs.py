"""A log comes to the same after Kafka's cleaner has been at it, as often as it likes."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.columnar.batch_columns import split_block
from tests.properties.storage.test_block_fold import fold_blocks
from tests.support.storage.cleanings import OVER, STAYING, check_cleaned, clean_often
from tests.support.storage.drawn_logs import LEGACY, LOGS, Write, encode, fold_batches, lay_out
from tests.support.storage.golden import segments

law = settings(max_examples=150)
CLEANINGS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([OVER, STAYING])), max_size=3)
WITHOUT_LEGACY = LOGS.filter(
    lambda writes: not any(key in LEGACY for write in writes for key, _ in write.records)
)


@law
@given(WITHOUT_LEGACY, st.integers(0, 2), st.integers(1, 4), CLEANINGS)
def test_a_cleaned_log_folds_to_the_same(
    writes: list[Write], gap: int, per_batch: int, cleanings: list[tuple[int, int]]
) -> None:
    log = list(encode(lay_out(writes, gap), per_batch))
    cleaned = clean_often(log, cleanings)
    assert fold_batches(cleaned) == fold_batches(log)
    assert fold_blocks([cleaned[:3], cleaned[3:]]) == fold_batches(log)


@law
@given(LOGS, st.integers(0, 2), st.integers(1, 4), st.lists(st.integers(0, 60), max_size=3))
def test_legacy_keys_do_too_as_long_as_tombstones_stay(
    writes: list[Write], gap: int, per_batch: int, ends: list[int]
) -> None:
    """To the cleaner a legacy key is another than its twin, which the twin's tombstone deletes."""
    log = list(encode(lay_out(writes, gap), per_batch))
    cleaned = clean_often(log, [(end, STAYING) for end in ends])
    assert fold_batches(cleaned) == fold_batches(log)


# ------------------------------------------------------------------------------------- real logs


def test_what_the_cleaner_leaves_of_kafkas_own_log_is_sound() -> None:
    """Groups that were converted, transactions, static members: of all there are old tombstones."""
    rng, cleaned_away = random.Random(5), 0
    for segment in segments().values():
        batches = split_block(segment)
        ends = (batches.starts + batches.sizes).tolist()
        log = [segment[a:b] for a, b in zip(batches.starts.tolist(), ends, strict=True)]
        cleaned_away += check_cleaned(log, rng, 6)
    assert cleaned_away > 1_000
