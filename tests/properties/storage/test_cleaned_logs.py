"""A log comes to the same after Kafka's cleaner has been at it, as often as it likes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from model.ids import LogPartition
from storage.codec.batches import read_batch_header
from storage.columnar.batch_columns import read_batch_columns, split_block
from storage.verify.partition import PartitionCheck
from tests.properties.storage.log_cleaner import clean
from tests.properties.storage.test_block_fold import fold_batches, fold_blocks
from tests.properties.storage.test_fold import LEGACY, LOGS, Write, encode, lay_out
from tests.support.storage.golden import segments

law = settings(max_examples=150)
DAY_MS = 86_400_000
OVER, STAYING = 0, DAY_MS
CLEANINGS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([OVER, STAYING])), max_size=3)
WITHOUT_LEGACY = LOGS.filter(
    lambda writes: not any(key in LEGACY for write in writes for key, _ in write.records)
)


def clean_often(log: Sequence[bytes], cleanings: Sequence[tuple[int, int]]) -> list[bytes]:
    """One cleaning after another; the time that tombstones have left is over at once, or stays."""
    now_ms = 1_000_000
    found = list(log)
    for end, retention_ms in cleanings:
        found = clean(found, end, now_ms, retention_ms)
        now_ms += 1
    return found


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


def check_cleaned(log: Sequence[bytes], rng: random.Random, cleanings: int) -> int:
    """Verified and folded after each of some cleanings; how many records were cleaned away."""
    wanted = fold_batches(log)
    ends = [read_batch_header(batch).last_offset + 1 for batch in log]
    for number in range(cleanings):
        end, retention_ms = rng.choice(ends), rng.choice([OVER, STAYING])
        cleaned = clean_often(log, [(end, retention_ms), (rng.choice(ends), retention_ms)])
        assert fold_batches(cleaned) == wanted, f"cleaning {number} up to {end}"
        check = PartitionCheck(LogPartition(0), start_offset=0)
        check.apply(read_batch_columns(cleaned))
        check.finish()
    return sum(map(_count, log)) - sum(map(_count, cleaned))


def _count(batch: bytes) -> int:
    return read_batch_header(batch).count


def test_what_the_cleaner_leaves_of_kafkas_own_log_is_sound() -> None:
    """Groups that were converted, transactions, static members: of all there are old tombstones."""
    rng, cleaned_away = random.Random(5), 0
    for segment in segments().values():
        batches = split_block(segment)
        ends = (batches.starts + batches.sizes).tolist()
        log = [segment[a:b] for a, b in zip(batches.starts.tolist(), ends, strict=True)]
        cleaned_away += check_cleaned(log, rng, 6)
    assert cleaned_away > 1_000
