"""Which partitions of a group a reset withholds, and what is kept of it."""

from __future__ import annotations

import numpy as np

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.partition_numbers import PartitionNumbers
from coordinator.core.state.reset_of_group import ResetOfGroup
from model.commands.offsets import TopicOffsets
from model.commands.resets import ResetOffsets
from model.group_resets import GroupReset, ResetTopic
from model.ids import GroupId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from model.responses.resets import OffsetsReset
from tests.support.virtual.server import CALLER, VirtualServer

FORMER, READ, LATER = (TopicId(name * 16) for name in (b"f", b"r", b"l"))


def test_a_topic_that_gets_numbers_that_were_given_back_is_withheld_too() -> None:
    """Nobody subscribes to the topic when the reset begins, and somebody does before its end."""
    group = ConsumerGroup(GroupId("g"))
    numbers = PartitionNumbers()
    numbers.ensure(FORMER, 2)
    numbers.ensure(READ, 1)
    group.numbers = numbers.without_unused(np.array([False, False, True]))
    topics = tuple(
        ResetTopic(TopicName(topic_id.decode()), topic_id, ((0, 5, -1, ""),))
        for topic_id in (READ, LATER)
    )
    reset = ResetOfGroup(GroupReset(3, 1, "User:a", topics))
    assert reset.find_numbers(group) == {2}
    group.numbers.ensure(LATER, 2)
    assert len(group.numbers) == 3
    assert reset.find_numbers(group) == {0, 2}


def test_of_a_reset_that_is_done_no_metadata_is_kept() -> None:
    server = VirtualServer({"t": 1})
    server.join("g", "a", ["t"])
    rows = make_offset_columns([(0, 5, 3, "beside it")])
    topics = (TopicOffsets(TopicName("t"), server.topic("t"), rows),)
    assert isinstance(server.ask(ResetOffsets(CALLER, GroupId("g"), topics)), OffsetsReset)

    def kept() -> tuple[object, ...]:
        ((topic,),) = (
            each.value.topics for each in server.runtime._shard_of(GroupId("g")).resets.values()
        )
        return topic.rows

    assert kept() == ((0, 5, 3, "beside it"),)
    server.restart()
    assert kept() == ((0, 5, 3, "beside it"),)
    server.beat(server.heartbeat("g", "a", 2, owned={}))
    assert kept() == ((0, 5, 3, ""),)
    server.restart()
    assert kept() == ((0, 5, 3, ""),)
