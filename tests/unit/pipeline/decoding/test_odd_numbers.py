"""A record may have any number that fits its fields: an impossible one does not end a run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from model.ids import GroupId, MemberId, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ClassicGroupMember,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    RecordKey,
    RecordValue,
    TopicPartitions,
)
from pipeline.decoding.blocks import decode_blocks
from pipeline.tables.end_offsets_file import EndOffsetsError, read_end_offsets
from pipeline.tables.histories.group_histories import follow_history, make_table_observers
from pipeline.tables.histories.history_tables import CLASSIC_GENERATIONS, HISTORY_TABLES
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from tests.pipeline.logged import make_event

LEAST, MOST = -(1 << 63), (1 << 63) - 1
LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the limit of Spark's timestamps."""

NOW = datetime(2026, 11, 23, tzinfo=UTC)
GROUP, MEMBER = GroupId("g"), MemberId("m")


def list_records(number: int, time_ms: int) -> list[tuple[RecordKey, RecordValue | None]]:
    member = ClassicGroupMember(MEMBER, None, "c", "h", number, number, b"\0", b"\xff" * 9)
    odd = GroupMetadataValue("consumer", number, "range", None, time_ms, (member,))
    usual = GroupMetadataValue("consumer", 1, "range", None, 0, (member,))
    topic_id = TopicId(bytes(range(16)))
    held = (AssignedTopicPartitions(topic_id, (number,), (number,)),)
    return [
        (GroupMetadataKey(GROUP), odd),
        (GroupMetadataKey(GROUP), usual),
        (GroupMetadataKey(GROUP), odd),
        (GroupMetadataKey(GROUP), None),
        (ConsumerGroupMetadataKey(GROUP), ConsumerGroupMetadataValue(number, time_ms)),
        (
            ConsumerGroupTargetAssignmentMemberKey(GROUP, MEMBER),
            ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(topic_id, (number,)),)),
        ),
        (
            ConsumerGroupTargetAssignmentMetadataKey(GROUP),
            ConsumerGroupTargetAssignmentMetadataValue(number, time_ms),
        ),
        (
            ConsumerGroupCurrentMemberAssignmentKey(GROUP, MEMBER),
            ConsumerGroupCurrentMemberAssignmentValue(number, number, 99, held, held),
        ),
        (ConsumerGroupMetadataKey(GROUP), ConsumerGroupMetadataValue(1, 0)),
    ]


@pytest.mark.parametrize("time_ms", [LEAST, -1, 0, LAST_MS, LAST_MS + 1, MOST])
@pytest.mark.parametrize("number", [-(1 << 31), 0, (1 << 31) - 1])
def test_the_history_has_a_row_all_the_same(number: int, time_ms: int) -> None:
    records = [
        (encode_key(key), None if value is None else encode_value(value))
        for key, value in list_records(number, time_ms)
    ]
    logged = decode_blocks(encode_batch(0, records, 1_795_000_000_000)).to_pylist()
    events = pa.RecordBatch.from_pylist([make_event(row)._asdict() for row in logged])
    tables = pa.Table.from_batches(follow_history([events], HISTORY_TABLES, make_table_observers))
    found = [row for row in tables[CLASSIC_GENERATIONS].to_pylist() if row is not None]
    is_a_time = 0 <= time_ms <= LAST_MS
    assert [row["generation"] for row in found] == [number, 1, number, None]
    assert [row["state_since"] is not None for row in found] == [is_a_time, True, is_a_time, False]


@pytest.mark.parametrize(
    "text",
    [
        '{"t": {"0": 9223372036854775808}}',
        '{"t": {"0": -1}}',
        '{"t": {"2147483648": 1}}',
        '{"topic": "t", "partition": 0, "end_offset": 1e400}',
        '{"topic": "t", "partition": -1, "end_offset": 1}',
        '{"topic": "t", "partition": 0, "end_offset": 1, "ts": 1e300}',
        '{"t": {"0": [1]}}',
        "[]",
        '"t"',
    ],
)
def test_end_offsets_that_cannot_be_are_refused_at_once(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ends.json"
    file.write_text(text)
    with pytest.raises(EndOffsetsError):
        read_end_offsets(file, NOW)


def test_a_topic_may_have_the_name_topic(tmp_path: Path) -> None:
    file = tmp_path / "ends.json"
    file.write_text('{"topic": {"0": 12}, "u": {"1": 9223372036854775807}}')
    found = [(end.topic, end.partition, end.end_offset) for end in read_end_offsets(file, NOW)]
    assert found == [("topic", 0, 12), ("u", 1, MOST)]
