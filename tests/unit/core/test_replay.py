"""Replay accepts whatever a log can have, including records that Kafka wrote."""

from __future__ import annotations

from coordinator.core.replay.group_records import replay
from coordinator.core.state.shard import Shard
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    Record,
    TopicPartitions,
)
from model.topics import TopicImage

G = GroupId("g")
FOO, BAR = TopicId(b"f" * 16), TopicId(b"b" * 16)


def test_partitions_in_any_order_are_the_partitions_they_name() -> None:
    """Trigger: Kafka writes partitions in hash-set order: 0 to 2 are known, then (16, 1)."""
    shard = Shard(LogPartition(0), CoordinatorSettings(), TopicImage())
    for member, topics in (("a", ((FOO, (0, 1, 2)), (BAR, (0,)))), ("b", ((FOO, (16, 1)),))):
        replay(
            shard,
            Record(
                ConsumerGroupTargetAssignmentMemberKey(G, MemberId(member)),
                ConsumerGroupTargetAssignmentMemberValue(
                    tuple(TopicPartitions(*topic) for topic in topics)
                ),
            ),
        )
        replay(
            shard,
            Record(
                ConsumerGroupCurrentMemberAssignmentKey(G, MemberId(member)),
                ConsumerGroupCurrentMemberAssignmentValue(
                    1, 0, 0, tuple(AssignedTopicPartitions(*topic) for topic in topics), ()
                ),
            ),
        )
    group = shard.consumer_groups[G]
    member_b = group.entries[MemberId("b")]
    assert group.numbers.topic_partitions(member_b.assigned) == (TopicPartitions(FOO, (1, 16)),)
    assert group.numbers.topic_partitions(member_b.target or ()) == (TopicPartitions(FOO, (1, 16)),)
    bar = group.numbers.numbers_of(BAR, (0,))[0]
    assert group.slots[group.owner[bar]] is group.entries[MemberId("a")]
