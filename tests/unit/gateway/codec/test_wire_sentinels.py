"""Commands do not contain the wire's sentinels: what they hold instead."""

from __future__ import annotations

from typing import Any

from gateway.codec.kio_schema import request_schema
from model.caller import Caller
from model.commands.consumer import UNCHANGED, ConsumerGroupLeave
from model.commands.offsets import OffsetCommit, OffsetFetch
from model.ids import ZERO_TOPIC_ID
from model.responses.consumer import ConsumerGroupLeaveResponse
from model.responses.offsets import OffsetCommitResponse, OffsetFetchResponse
from tests.support.gateway.wire_door import Gateway
from tests.support.wire.fields import beat, join

HEARTBEAT, COMMIT, FETCH = 68, 8, 9
CALLER = Caller("User:ANONYMOUS", "c", "/127.0.0.1")


def command_of(key: int, version: int, answer: Any = None, **fields: Any) -> Any:
    """The command that a request is made into."""
    gateway = Gateway()
    if answer is not None:
        gateway.coordinator.answer = lambda command: answer
    gateway.connect().request(key, version, 1, **fields)
    [command] = gateway.coordinator.commands
    assert command.caller == CALLER
    return command


def test_heartbeat_that_says_nothing() -> None:
    command = command_of(HEARTBEAT, 1, **beat("g", "m", 4))
    assert (command.group_id, command.member_id, command.member_epoch) == ("g", "m", 4)
    assert command.owned is None
    assert command.instance_id is None
    for value in (
        command.rebalance_timeout_ms,
        command.subscribed_topic_names,
        command.rack_id,
        command.server_assignor,
        command.subscribed_topic_regex,
    ):
        assert value is UNCHANGED


def test_heartbeat_that_says_everything() -> None:
    wire = request_schema(HEARTBEAT)
    owned = (
        wire.TopicPartitions(topic_id=b"t" * 16, partitions=(3, 1, 3)),
        wire.TopicPartitions(topic_id=None, partitions=()),
    )
    command = command_of(
        HEARTBEAT,
        1,
        **beat(
            "g",
            "m",
            4,
            rebalance_timeout=0,
            subscribed_topic_names=(),
            subscribed_topic_regex="",
            rack_id="r",
            server_assignor="range",
            instance_id="i",
            topic_partitions=owned,
        ),
    )
    assert (command.rebalance_timeout_ms, command.subscribed_topic_names) == (0, ())
    assert (command.subscribed_topic_regex, command.rack_id) == ("", "r")
    assert (command.server_assignor, command.instance_id) == ("range", "i")
    assert [(row.topic_id, row.partitions) for row in command.owned] == [
        (b"t" * 16, (1, 3)),
        (ZERO_TOPIC_ID, ()),
    ]


def test_version_0_makes_a_member_id_for_a_join_without_one() -> None:
    ids = {command_of(HEARTBEAT, 0, **join("g", "", ("t",))).member_id for _ in range(3)}
    assert len(ids) == 3
    assert all(ids)


def test_epochs_below_zero_leave() -> None:
    for epoch, instance in ((-1, None), (-2, "i")):
        fields = beat("g", "m", epoch, instance_id=instance)
        command = command_of(HEARTBEAT, 1, ConsumerGroupLeaveResponse("m", epoch), **fields)  # type: ignore[arg-type]
        assert isinstance(command, ConsumerGroupLeave)
        assert (command.member_epoch, command.instance_id) == (epoch, instance)


def test_commit() -> None:
    wire = request_schema(COMMIT, 9)
    rows = tuple(
        wire.OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=-1,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for number, (leader_epoch, metadata) in enumerate([(-1, None), (0, ""), (7, "m")])
    )
    topics = (wire.OffsetCommitRequestTopic(name="t", partitions=rows),)
    for epoch, expected in ((-1, None), (-2, -2), (0, 0), (5, 5)):
        command = command_of(
            COMMIT,
            9,
            OffsetCommitResponse(()),
            group_id="g",
            generation_id_or_member_epoch=epoch,
            topics=topics,
        )
        assert isinstance(command, OffsetCommit)
        assert command.member_epoch == expected
        assert (command.member_id, command.instance_id) == ("", None)
        assert command.retention_time_ms is None
        assert command.by_consumer_protocol
        [topic] = command.topics
        assert (topic.name, topic.topic_id) == ("t", None)
        assert list(topic.offsets.rows()) == [(0, -1, -1, ""), (1, -1, 0, ""), (2, -1, 7, "m")]


def test_commit_of_old_versions() -> None:
    for sent, expected in ((-1, None), (0, 0), (5_000, 5_000), (2**63 - 1, 2**62)):
        command = command_of(
            COMMIT, 2, OffsetCommitResponse(()), group_id="g", retention_time=sent, topics=()
        )
        assert command.retention_time_ms == expected
        assert not command.by_consumer_protocol


def test_fetch() -> None:
    wire = request_schema(FETCH, 10)
    topic = wire.OffsetFetchRequestTopics(topic_id=None, partition_indexes=(1,))
    cases = [
        ({}, None, None),
        ({"member_id": "", "member_epoch": -1}, "", None),
        ({"member_id": "m", "member_epoch": 0}, "m", 0),
    ]
    for extra, member_id, member_epoch in cases:
        row = wire.OffsetFetchRequestGroup(group_id="g", topics=(topic,), **extra)
        command = command_of(FETCH, 10, OffsetFetchResponse("g", ()), groups=(row,))  # type: ignore[arg-type]
        assert isinstance(command, OffsetFetch)
        assert (command.member_id, command.member_epoch) == (member_id, member_epoch)
        assert command.topics is not None
        assert [(row.name, row.topic_id) for row in command.topics] == [(None, ZERO_TOPIC_ID)]
    everything = wire.OffsetFetchRequestGroup(group_id="g", topics=None)
    command = command_of(
        FETCH,
        10,
        OffsetFetchResponse("g", ()),
        groups=(everything,),
        require_stable=True,
    )
    assert command.topics is None
    assert command.require_stable
