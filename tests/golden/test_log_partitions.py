"""A group has one coordinator for ever: its partition of the log is Kafka's."""

from __future__ import annotations

from model.ids import GroupId, compute_log_partition
from tests.golden.kafka_log import PARTITIONS
from tests.golden.written_records import read_group
from tests.support.storage.golden import logged_records


def test_every_group_is_where_kafka_has_it() -> None:
    places = {
        (group_id, record["partition"])
        for record in logged_records()
        if (group_id := read_group(record["keyJson"])) is not None
    }
    assert len({partition for _, partition in places}) > PARTITIONS // 2
    for group_id, partition in places:
        assert compute_log_partition(GroupId(group_id), PARTITIONS) == partition, group_id


def test_ids_that_java_hashes_to_negative_numbers_and_outside_ascii() -> None:
    # hashCode() of "polygenelubricants" is Integer.MIN_VALUE, of which there is no absolute value.
    assert compute_log_partition(GroupId("polygenelubricants"), 50) == 0
    # UTF-16: a character beyond the first plane is two of Java's.
    assert compute_log_partition(GroupId("\U0001f600"), 50) == (0xD83D * 31 + 0xDE00) % 50
