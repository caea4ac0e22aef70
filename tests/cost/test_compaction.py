"""Compaction of a topic runs on the loop, a step at a time: each is short, and all are linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.topics.log.batch_lookup import RECORDS_MAX
from gateway.topics.log.compaction import compact_in_steps
from gateway.topics.log.open_files import OpenFiles
from gateway.topics.log.partition_log import PartitionLog
from gateway.topics.log.produced import check_batch
from gateway.topics.settings import TopicSettings
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import HEADER_SIZE
from tests.cost.turns import Counted, Steps, check_law

NOW_MS = 1_700_000_000_000
SETTINGS = TopicSettings(log_min_free_bytes=0)
SEGMENT_BYTES = SETTINGS.gateway_topics_segment_bytes
BATCHES_MAX = SEGMENT_BYTES // HEADER_SIZE
"""Of one segment."""
SEGMENTS_MAX = SETTINGS.gateway_topics_total_bytes // SEGMENT_BYTES

Fill = Callable[[PartitionLog, int], None]


def append(log: PartitionLog, keys: range, value: bytes = b"v") -> None:
    data = encode_batch(0, [(b"%d" % key, value) for key in keys], NOW_MS)
    log.append(check_batch(data, SETTINGS.message_max_bytes, NOW_MS))


def fill_batches(log: PartitionLog, count: int) -> None:
    """Of one segment, each of one record, half of which go."""
    for number in range(count):
        append(log, range(number // 2, number // 2 + 1))


def fill_records(log: PartitionLog, count: int) -> None:
    """Of one batch, half of which go."""
    append(log, range(count))
    append(log, range(0, count, 2))


def fill_segments(log: PartitionLog, count: int) -> None:
    """Of one batch each, and nothing goes."""
    for number in range(count):
        append(log, range(number, number + 1))
        log._roll()


def open_log(folder: Path, settings: TopicSettings) -> PartitionLog:
    log = PartitionLog(folder, OpenFiles(16), settings, 0)
    for _ in log.recover():
        pass
    return log


def make_log(folder: Path, fill: Fill, count: int) -> PartitionLog:
    """What is filled is complete; a segment has no more than that."""
    log = open_log(folder, SETTINGS)
    fill(log, count)
    log._roll()
    append(log, range(1))
    return log


def count_steps(steps: Iterator[object]) -> Counted:
    counted, counter = Counted(), Steps()
    while True:
        before = counter.count
        with counter.on():
            is_end = next(steps, steps) is steps
        took = counter.count - before
        counted.turns += 1
        counted.total += took
        counted.longest = max(counted.longest, took)
        if is_end:
            return counted


@pytest.mark.parametrize("is_reopened", [False, True], ids=["open", "reopened"])
@pytest.mark.parametrize(
    ("fill", "n", "limit"),
    [
        (fill_batches, 250, BATCHES_MAX),
        (fill_records, RECORDS_MAX // 8, RECORDS_MAX),
        (fill_segments, SEGMENTS_MAX // 8, SEGMENTS_MAX),
    ],
)
def test_compaction_is_linear_and_has_short_steps(
    fill: Fill, n: int, limit: int, is_reopened: bool, tmp_path: Path
) -> None:
    """Also of segments of which nothing is known since the server was started."""
    runs = iter(range(100))

    def measure(count: int) -> Counted:
        folder = tmp_path / str(next(runs))
        log = make_log(folder, fill, count)
        if is_reopened:
            log = open_log(folder, SETTINGS)
        return count_steps(compact_in_steps(log, NOW_MS, SEGMENT_BYTES))

    check_law(measure, n, limit)
