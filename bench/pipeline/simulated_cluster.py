"""Generates the log of a simulated cluster as Kafka segments, millions of records a minute.

Nearly all records are offset commits. All commits of a group have the same bytes except for offsets
and times, so they are generated as one array; only the CRC takes a call for each batch.

    python -m bench.pipeline.simulated_cluster FOLDER --groups 10000 --days 30 --records 50000000
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import crc32c
import numpy as np
import numpy.typing as npt

from bench.pipeline.simulated_groups import Life, Topic, make_topics, simulate_group
from model.ids import GroupId, compute_log_partition
from model.log.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import HEADER_SIZE
from storage.codec.record_codec import encode_key, encode_value

LOG_PARTITIONS = 50
START_MS = 1_795_000_000_000
SEGMENT_BYTES = 100 << 20
END_OFFSETS = "end-offsets.jsonl"

_DAY_MS = 86_400_000
_LEADER_EPOCH = 7
_BASE_OFFSET, _CRC, _BASE_TIME, _MAX_TIME = slice(0, 8), slice(17, 21), slice(27, 35), slice(35, 43)
_CRC_START = 21
_OFFSET_AT, _TIME_AT = 2, 15
_HEADERS_SIZE = 1
_SAMPLE_MS = _DAY_MS
_SLOWEST_SHARE, _STUCK_SHARE = 0.02, 0.01

Rows = npt.NDArray[np.uint8]
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The size and the seed of a cluster; ``records`` is approximate."""

    groups: int = 10_000
    days: float = 30
    records: int = 50_000_000
    seed: int = 1

    @property
    def end_ms(self) -> int:
        """The end of the log in wall-clock ms; it begins at ``START_MS``."""
        return START_MS + int(self.days * _DAY_MS)


@dataclass(frozen=True, slots=True)
class Written:
    """Records and bytes that were written."""

    records: int
    bytes: int


def write_cluster(folder: Path, cluster: Cluster, processes: int = 2) -> Written:
    """Write the log of a cluster and, beside it, the daily end offsets of its topics."""
    log = folder / "log"
    log.mkdir(parents=True)
    topics = make_topics(cluster.groups, cluster.seed)
    write = partial(_write_partition, log, cluster, topics)
    numbers = range(LOG_PARTITIONS)
    if processes == 1:
        written = [write(number) for number in numbers]
    else:
        # Spawned, not forked: the caller may have threads.
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            written = pool.map(write, numbers, chunksize=1)
    with (folder / END_OFFSETS).open("w", encoding="utf-8") as file:
        for line in _make_end_offsets(topics, cluster):
            file.write(json.dumps(line) + "\n")
    return Written(sum(part.records for part in written), sum(part.bytes for part in written))


def _write_partition(
    log: Path, cluster: Cluster, topics: Sequence[Topic], log_partition: int
) -> Written:
    times: list[int] = []
    batches: list[memoryview | bytearray] = []
    counts: list[int] = []
    for number in range(cluster.groups):
        group = GroupId(f"group-{number:07}")
        if compute_log_partition(group, LOG_PARTITIONS) != log_partition:
            continue
        topic = topics[number % len(topics)]
        life = simulate_group(number, topic, cluster.seed, START_MS, cluster.end_ms)
        for write in life.writes:
            times.append(write.time_ms)
            data = encode_batch(0, write.records, write.time_ms, leader_epoch=_LEADER_EPOCH)
            batches.append(bytearray(data))
            counts.append(len(write.records))
        commit_times, rows = _make_commits(number, life, cluster)
        times += commit_times.tolist()
        batches += map(memoryview, rows)
        counts += [topic.partitions] * len(rows)
    order = np.argsort(np.array(times, dtype=np.int64), kind="stable").tolist()
    return _write_segments(log / f"__consumer_offsets-{log_partition}", order, batches, counts)


def _write_segments(
    folder: Path,
    order: Sequence[int],
    batches: Sequence[memoryview | bytearray],
    counts: Sequence[int],
) -> Written:
    folder.mkdir()
    offset = size = in_file = 0
    file = None
    for index in order:
        if file is None or in_file >= SEGMENT_BYTES:
            if file is not None:
                file.close()
            file = (folder / f"{offset:020}.log").open("wb")
            in_file = 0
        batch = batches[index]
        batch[_BASE_OFFSET] = offset.to_bytes(8, "big")
        file.write(batch)
        offset += counts[index]
        in_file += len(batch)
        size += len(batch)
    if file is None:
        (folder / f"{0:020}.log").touch()
    else:
        file.close()
    return Written(offset, size)


def _make_commits(number: int, life: Life, cluster: Cluster) -> tuple[Times, Rows]:
    """The commits of a group: times, and one batch per row with base offset 0."""
    chance = np.random.default_rng([cluster.seed, number])
    topic = life.topic
    share = cluster.records / cluster.groups / topic.partitions
    # Some groups commit far more than others, with the same mean.
    count = max(1, int(share * min(20.0, chance.lognormal(-0.5, 1.0))))
    times = np.sort(chance.integers(life.start_ms, life.end_ms, count))
    offsets = _compute_positions(times, topic, life, chance)
    template, record_size, value_at = _make_template(life.group, topic)
    rows: Rows = np.tile(np.frombuffer(template, dtype=np.uint8), (count, 1))
    time_bytes = _encode(times)
    rows[:, _BASE_TIME] = rows[:, _MAX_TIME] = time_bytes
    values = rows[:, HEADER_SIZE:].reshape(count, topic.partitions, record_size)[:, :, value_at:]
    values[:, :, _OFFSET_AT : _OFFSET_AT + 8] = _encode(offsets)
    values[:, :, _TIME_AT : _TIME_AT + 8] = time_bytes[:, np.newaxis, :]
    crcs = [crc32c.crc32c(row[_CRC_START:]) for row in map(memoryview, rows)]  # type: ignore[arg-type]
    rows[:, _CRC] = np.array(crcs, dtype=">u4").view(np.uint8).reshape(count, 4)
    return times, rows


def _make_template(group: GroupId, topic: Topic) -> tuple[bytes, int, int]:
    """A commit of all partitions, the size of each record, and where its value begins."""
    value = encode_value(OffsetCommitValue(0, _LEADER_EPOCH, "", 0, topic_id=topic.topic_id))
    records = [
        (encode_key(OffsetCommitKey(group, topic.name, partition)), value)
        for partition in range(topic.partitions)
    ]
    batch = encode_batch(0, records, 0, leader_epoch=_LEADER_EPOCH)
    record_size = (len(batch) - HEADER_SIZE) // topic.partitions
    return batch, record_size, record_size - _HEADERS_SIZE - len(value)


def _compute_positions(
    times: Times, topic: Topic, life: Life, chance: np.random.Generator
) -> Times:
    """Committed offsets, one row per commit: seconds of lag, which grows in some groups."""
    behind_s = chance.uniform(0, 5, (len(times), topic.partitions))
    fate = chance.random()
    middle_ms = (life.start_ms + life.end_ms) // 2
    later_s = np.maximum(0, times - middle_ms) / 1000
    if fate < _SLOWEST_SHARE:
        behind_s += later_s[:, np.newaxis] * chance.uniform(0.05, 0.5)
    elif fate < _SLOWEST_SHARE + _STUCK_SHARE:
        behind_s[:, 0] += later_s
    positions_s = (times[:, np.newaxis] - START_MS) / 1000 - behind_s
    offsets = np.maximum(0, positions_s * topic.rate).astype(np.int64)
    return np.maximum.accumulate(offsets, axis=0)


def _make_end_offsets(topics: Sequence[Topic], cluster: Cluster) -> Iterator[dict[str, object]]:
    for time_ms in range(START_MS + _SAMPLE_MS, cluster.end_ms + 1, _SAMPLE_MS):
        for topic in topics:
            end = int((time_ms - START_MS) / 1000 * topic.rate)
            for number in range(topic.partitions):
                yield {"topic": topic.name, "partition": number, "end_offset": end, "ts": time_ms}


def _encode(numbers: Times) -> Rows:
    """Encode as big-endian; the eight bytes are a new last axis."""
    return numbers.astype(">i8").view(np.uint8).reshape(*numbers.shape, 8)


def main() -> None:
    """Write the cluster given on the command line."""
    parser = argparse.ArgumentParser(description="The log of a simulated cluster.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    cluster = Cluster(chosen.groups, chosen.days, chosen.records, chosen.seed)
    written = write_cluster(chosen.folder, cluster)
    print(f"{written.records:,} records, {written.bytes:,} bytes")


if __name__ == "__main__":
    main()
