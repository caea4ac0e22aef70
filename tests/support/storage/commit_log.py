"""Generator of long logs of offset commits, as a broker writes them, for speed and memory tests."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from model.ids import GroupId, TopicId, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value

START_MS = 1_760_000_000_000
_TOPIC_ID = TopicId(bytes(range(16)))


class Shape(NamedTuple):
    """The shape of the commits: the batches cycle through ``sizes``."""

    name: str
    sizes: Sequence[int]


ONE = Shape("commits of 1 partition", (1,))
HUNDRED = Shape("commits of 100 partitions", (100,))
MIXED = Shape("commits of 1 to 200 partitions", (1, 3, 1, 12, 50, 1, 200, 2, 1, 100))
SHAPES = (ONE, HUNDRED, MIXED)


def make_commit_log(
    shape: Shape, records: int, *, groups: int = 20, partitions: int = 200, metadata: str = ""
) -> Iterator[bytes]:
    """Batches with at least ``records`` commits; each group commits its partitions in turn."""
    chance = random.Random(shape.name)
    keys = [
        [
            encode_key(OffsetCommitKey(GroupId(f"group-{g}"), TopicName("orders"), p))
            for p in range(partitions)
        ]
        for g in range(groups)
    ]
    made, number = 0, 0
    while made < records:
        size = shape.sizes[number % len(shape.sizes)]
        time = START_MS + 5 * number
        start = chance.randrange(partitions)
        group = keys[chance.randrange(groups)]
        value = encode_value(OffsetCommitValue(made, -1, metadata, time, topic_id=_TOPIC_ID))
        yield encode_batch(
            made,
            [(group[(start + index) % partitions], value) for index in range(size)],
            time,
        )
        made += size
        number += 1
