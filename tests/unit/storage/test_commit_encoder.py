"""A commit packed in one piece has the bytes that its record and its batch have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model.ids import GroupId, TopicId, TopicName
from model.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batches import encode_batch
from storage.codec.commit_encoder import CommitEncoder
from storage.codec.records import encode_key, encode_value

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
    batch, alone = encoder.encode_batch(offset, time_ms, partition, offset, epoch - 1, time_ms)
    assert alone == value
    assert batch == encode_batch(offset, [(key, value)], time_ms)
    assert len(batch) == encoder.size
