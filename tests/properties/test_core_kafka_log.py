"""The log of a real Kafka 4.3.0, replayed: by our replay and by the naive one, and compacted."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from coordinator.core.replay.group_records import replay
from model.log.records import Record
from model.topics import TopicImage
from storage.codec.record_codec import decode_key, decode_value
from storage.log.compression import decompress
from tests.groups import TESTS
from tests.support.batches import decode_batches
from tests.support.core_driver import (
    DROPS_TOMBSTONES,
    KEEPS_TOMBSTONES,
    compact,
    replay_all,
)
from tests.support.invariants import (
    legal_target_assignment,
    no_double_client_assignment,
    valid_partition_epoch,
)
from tests.support.shadow import Shadow, describe_shadow, describe_shards

SEGMENTS = sorted((TESTS / "golden" / "segments").glob("*/*.log"))
WINDOWS = 40


@cache
def read_batches(path: Path) -> tuple[tuple[Record, ...], ...]:
    """The records of each batch; control batches say nothing of groups."""
    found = []
    for batch in decode_batches(path.read_bytes(), decompress=decompress):
        if batch.is_control:
            continue
        records = []
        for record in batch.records:
            assert record.key is not None
            kind = int.from_bytes(record.key[:2], "big")
            value = None if record.value is None else decode_value(kind, record.value)[1]
            records.append(Record(decode_key(record.key), value))
        found.append(tuple(records))
    return tuple(found)


@pytest.mark.parametrize("path", SEGMENTS, ids=[path.parent.name for path in SEGMENTS])
def test_every_position_of_kafkas_log_is_sound_and_replayed_alike(path: Path) -> None:
    """S13 and S1, S3, S4 after each batch that Kafka wrote."""
    shard, shadow = replay_all([], TopicImage()), Shadow()
    for batch in read_batches(path):
        for record in batch:
            replay(shard, record)
            shadow.apply(record)
        for group in shard.consumer_groups.values():
            no_double_client_assignment(group)
            valid_partition_epoch(group)
            legal_target_assignment(group)
        assert describe_shards([shard]) == describe_shadow(shadow)


@pytest.mark.parametrize("path", SEGMENTS, ids=[path.parent.name for path in SEGMENTS])
def test_any_compaction_of_kafkas_log_gives_the_same_state(path: Path) -> None:
    """S14, for windows on any border of a batch, tombstones kept or dropped."""
    batches = read_batches(path)
    log = [record for batch in batches for record in batch]
    borders = [0]
    for batch in batches:
        borders.append(borders[-1] + len(batch))
    whole = describe_shards([replay_all(log, TopicImage())])
    rng = random.Random(len(log))
    for number in range(WINDOWS):
        first, end = sorted(rng.choices(borders, k=2)) if number else (0, len(log))
        for drops in (KEEPS_TOMBSTONES, DROPS_TOMBSTONES, rng.randrange(DROPS_TOMBSTONES)):
            replayed = replay_all(compact(log, first, end, drops), TopicImage())
            assert describe_shards([replayed]) == whole, (first, end, drops)
