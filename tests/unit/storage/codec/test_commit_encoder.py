"""A commit packed in one piece has the bytes that its record and its batch have."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.ids import GroupId, TopicId, TopicName
from model.log.commit_records import OffsetColumns
from model.log.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batch_encoding import encode_batch
from storage.codec.commit_encoder import CommitEncoder
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import pack_latest, pack_latest_rows

INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
NAMES = st.text(min_size=1, max_size=100)


@given(NAMES, NAMES, st.binary(min_size=16, max_size=16).filter(any), INT32, INT64, INT32, INT64)
def test_the_bytes_are_those_of_the_record_and_its_batch(
    group: str, topic: str, topic_id: bytes, partition: int, offset: int, epoch: int, time_ms: int
) -> None:
    encoder = CommitEncoder(group, topic, TopicId(topic_id))
    key = encode_key(OffsetCommitKey(GroupId(group), TopicName(topic), partition))
    value = encode_value(
        OffsetCommitValue(offset, epoch - 1, "", time_ms, topic_id=TopicId(topic_id))
    )
    assert encoder.encode_key(partition) == key
    assert encoder.encode_value(offset, epoch - 1, time_ms) == value
    columns = OffsetColumns((partition,), (offset,), (epoch - 1,))
    batch, alone = encoder.encode_batch(offset, time_ms, columns, time_ms)
    assert alone == value
    assert batch == encode_batch(offset, [(key, value)], time_ms)
    assert len(batch) == encoder.size


@given(
    st.text(min_size=1, max_size=40), st.sampled_from([1, 8, 63, 64, 65, 100, 700]), st.randoms()
)
def test_many_rows_have_the_bytes_of_as_many_records(group: str, count: int, rng: Any) -> None:
    check_rows(group, count, rng)


@pytest.mark.parametrize("count", [8_191, 8_192, 8_193, 8_455, 70_000])
def test_offset_deltas_of_any_length_are_whole(count: int) -> None:
    """A delta has one byte below 64, two below 8,192, then three."""
    check_rows("g", count, random.Random(count))


def check_rows(group: str, count: int, rng: Any) -> None:
    topic_id, time_ms = TopicId(b"\x07" * 16), 1_700_000_000_000
    encoder = CommitEncoder(group, "topic", topic_id)
    partitions = rng.sample(range(1 << 20), count)
    offsets = [rng.randrange(1 << 60) for _ in partitions]
    epochs = [rng.randrange(-1, 1 << 20) for _ in partitions]
    keys = encoder.encode_keys(partitions)
    columns = OffsetColumns(
        np.array(partitions, ">i4"), np.array(offsets, ">i8"), np.array(epochs, ">i4"), keys=keys
    )
    # What another commit of the same partitions leaves in the template must not show.
    encoder.encode_rows(3, 1, columns._replace(offsets=np.arange(count, dtype=">i8")), 2)
    values = [
        encoder.encode_value(offset, epoch, time_ms)
        for offset, epoch in zip(offsets, epochs, strict=True)
    ]
    batch, parts = encoder.encode_rows(7, time_ms, columns, time_ms)
    matrix = np.concatenate(parts)
    assert [row.tobytes() for row in matrix] == values
    assert batch == encode_batch(7, list(zip(keys, values, strict=True)), time_ms)
    assert pack_latest_rows(7, time_ms, matrix) == [
        pack_latest(7 + number, time_ms, value) for number, value in enumerate(values)
    ]
