"""Generates segments of offset commits from a seed: 10 groups that commit 100 partitions each.

The bytes are those that Kafka 4.3's coordinator appends for an OffsetCommit of 100 partitions:
one batch of 100 records, keys of type 1 and values of version 4 with the topic's id, leader epochs
and no metadata. A real broker under load puts several commits into one batch (up to 1 MiB), so its
segments have fewer, larger batches; both shapes can be generated.

    python -m bench.pipeline.commit_segment FOLDER --segments 2
"""

from __future__ import annotations

import argparse
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from storage.codec.batch_encoding import encode_batch
from storage.codec.hot import encode_offset_key_prefix

GROUPS = 10
PARTITIONS = 100
RECORDS = 736_500
START_MS = 1_795_000_000_000

_KEY_END = struct.Struct(">i")
_VALUE = struct.Struct(">hqibqbbb16s")
_VERSION = 4
_NO_METADATA = 1
_TOPIC_ID_TAG = (1, 0, 16)


def make_batches(
    records: int, seed: int, *, first_offset: int = 0, commits_of_batch: int = 1
) -> Iterator[bytes]:
    """Yield batches of ``commits_of_batch`` commits each, with ``records`` records in total."""
    chance = random.Random(seed)
    topic_id = chance.randbytes(16)
    keys = [
        [
            encode_offset_key_prefix(f"payments-{group}", "orders.placed.v2")
            + _KEY_END.pack(partition)
            for partition in range(PARTITIONS)
        ]
        for group in range(GROUPS)
    ]
    positions = [[chance.randrange(1 << 30) for _ in range(PARTITIONS)] for _ in range(GROUPS)]
    made = 0
    time_ms = START_MS + 10 * first_offset
    while made < records:
        batch: list[tuple[bytes, bytes]] = []
        time_ms += chance.randrange(1, 2000)
        for _ in range(commits_of_batch):
            group = chance.randrange(GROUPS)
            for partition in range(min(PARTITIONS, records - made - len(batch))):
                positions[group][partition] += chance.randrange(500)
                offset = positions[group][partition]
                value = _VALUE.pack(
                    _VERSION, offset, 7, _NO_METADATA, time_ms, *_TOPIC_ID_TAG, topic_id
                )
                batch.append((keys[group][partition], value))
        yield encode_batch(first_offset + made, batch, time_ms, leader_epoch=7)
        made += len(batch)


def write_segments(folder: Path, count: int, *, records: int = RECORDS, seed: int = 1) -> Path:
    """Write segments of one log partition; the folder has no other files."""
    partition = folder / "__consumer_offsets-17"
    partition.mkdir(parents=True)
    for number in range(count):
        first = number * records
        with (partition / f"{first:020}.log").open("wb") as file:
            file.writelines(make_batches(records, seed + number, first_offset=first))
    return folder


def main() -> None:
    """Write the segments given on the command line."""
    parser = argparse.ArgumentParser(description="Segments of offset commits.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--segments", type=int, default=1)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    write_segments(chosen.folder, chosen.segments, records=chosen.records, seed=chosen.seed)


if __name__ == "__main__":
    main()
