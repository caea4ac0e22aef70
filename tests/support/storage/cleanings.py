"""Cleanings of a log, one after another, and what they must leave."""

from __future__ import annotations

import random
from collections.abc import Sequence

from model.ids import LogPartition
from storage.codec.batches import read_batch_header
from storage.columnar.batch_columns import read_batch_columns
from storage.verify.partition import PartitionCheck
from tests.support.storage.drawn_logs import fold_batches
from tests.support.storage.log_cleaner import clean

DAY_MS = 86_400_000
OVER, STAYING = 0, DAY_MS


def clean_often(log: Sequence[bytes], cleanings: Sequence[tuple[int, int]]) -> list[bytes]:
    """One cleaning after another; the time that tombstones have left is over at once, or stays."""
    now_ms = 1_000_000
    found = list(log)
    for end, retention_ms in cleanings:
        found = clean(found, end, now_ms, retention_ms)
        now_ms += 1
    return found


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
