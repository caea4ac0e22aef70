"""The unary calls of GroupService, against a real coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from model.access.acls import Operation, ResourceType
from muster.v1 import group_pb2, types_pb2
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand, running_stand


def heartbeat(**fields: Any) -> group_pb2.HeartbeatRequest:
    defaults: dict[str, Any] = {"group_id": "g", "member_id": "m1", "client_id": "poller"}
    return group_pb2.HeartbeatRequest(**(defaults | fields))


def first_heartbeat(**fields: Any) -> group_pb2.HeartbeatRequest:
    return heartbeat(
        rebalance_timeout_ms=60_000,
        subscription=group_pb2.Subscription(subscribed_topic_names=["orders"]),
        **fields,
    )


def offsets(topic: str = "orders", **of: int) -> list[types_pb2.TopicOffsets]:
    entries = [
        types_pb2.PartitionOffset(partition=int(key[1:]), offset=value, metadata=f"at {value}")
        for key, value in of.items()
    ]
    return [types_pb2.TopicOffsets(topic_name=topic, partitions=entries)]


async def test_a_member_that_polls(stand: Stand) -> None:
    stub = stand.group_stub()
    joined = await stub.Heartbeat(first_heartbeat())
    assert not joined.HasField("error")
    assert (joined.member_id, joined.member_epoch) == ("m1", 2)
    assert (joined.heartbeat_interval_ms, joined.session_timeout_ms) == (5_000, 45_000)
    (topic,) = joined.assignment.topics
    assert (topic.topic_name, list(topic.partitions)) == ("orders", [0, 1, 2, 3])
    steady = await stub.Heartbeat(heartbeat(member_epoch=2))
    assert steady.member_epoch == 2
    assert not steady.HasField("assignment")
    full = await stub.Heartbeat(first_heartbeat(member_epoch=2, owned=joined.assignment))
    assert full.assignment == joined.assignment
    left = await stub.Heartbeat(heartbeat(member_epoch=-1))
    assert (left.member_epoch, left.heartbeat_interval_ms) == (-1, 0)
    gone = await stub.Heartbeat(heartbeat(member_epoch=2))
    assert gone.error.reason == "UNKNOWN_MEMBER_ID"
    assert gone.error.error_code == 25


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"group_id": ""}, "INVALID_REQUEST"),
        ({"member_id": ""}, "INVALID_REQUEST"),
        ({"member_epoch": -2}, "INVALID_REQUEST"),
        ({"member_epoch": -3}, "INVALID_REQUEST"),
        ({"member_epoch": 3}, "GROUP_ID_NOT_FOUND"),
        ({"instance_id": "i" * 2_000}, "INVALID_REQUEST"),
        ({"instance_id": "static", "member_epoch": 3}, "GROUP_ID_NOT_FOUND"),
        ({"server_assignor": "astrology"}, "UNSUPPORTED_ASSIGNOR"),
        ({"client_id": "c" * 1_025}, "INVALID_REQUEST"),
    ],
)
async def test_heartbeats_that_make_no_sense(
    stand: Stand, fields: dict[str, Any], reason: str
) -> None:
    response = await stand.group_stub().Heartbeat(first_heartbeat(**fields))
    assert response.error.reason == reason
    assert not await stand.members("g")


@pytest.mark.parametrize(
    "request_",
    [
        heartbeat(),
        heartbeat(rebalance_timeout_ms=1_000),
        heartbeat(subscription=group_pb2.Subscription()),
        first_heartbeat(
            owned=types_pb2.PartitionSet(topics=[types_pb2.TopicPartitions(topic_name="orders")])
        ),
        heartbeat(rebalance_timeout_ms=0, subscription=group_pb2.Subscription()),
    ],
)
async def test_a_first_heartbeat_says_all(
    stand: Stand, request_: group_pb2.HeartbeatRequest
) -> None:
    response = await stand.group_stub().Heartbeat(request_)
    assert response.error.reason == "INVALID_REQUEST"


async def test_a_subscription_says_all_so_that_without_a_pattern_there_is_none(
    stand: Stand,
) -> None:
    stub = stand.group_stub()
    both = group_pb2.Subscription(
        subscribed_topic_names=["orders"], subscribed_topic_regex="later-.*"
    )
    joined = await stub.Heartbeat(heartbeat(rebalance_timeout_ms=60_000, subscription=both))
    assert not joined.HasField("error")
    assert (await stand.members("g"))["m1"].subscribed_topic_regex == "later-.*"
    names = group_pb2.Subscription(subscribed_topic_names=["orders"])
    changed = await stub.Heartbeat(heartbeat(member_epoch=joined.member_epoch, subscription=names))
    assert not changed.HasField("error")
    assert (await stand.members("g"))["m1"].subscribed_topic_regex == ""
    pattern = group_pb2.Subscription(subscribed_topic_regex="(unclosed")
    refused = await stub.Heartbeat(
        heartbeat(member_epoch=changed.member_epoch, subscription=pattern)
    )
    assert (refused.error.reason, refused.error.error_code) == ("INVALID_REGULAR_EXPRESSION", 128)


async def test_commits_without_a_group_and_fetches(stand: Stand) -> None:
    stub = stand.group_stub()
    request = group_pb2.CommitOffsetsRequest(group_id="loose", topics=offsets(p0=7, p2=9))
    committed = await stub.CommitOffsets(request)
    assert not committed.HasField("error")
    assert not committed.failures
    everything = await stub.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="loose"))
    (topic,) = everything.topics
    found = [(entry.partition, entry.offset, entry.metadata) for entry in topic.partitions]
    assert sorted(found) == [(0, 7, "at 7"), (2, 9, "at 9")]
    wanted = types_pb2.PartitionSet(
        topics=[types_pb2.TopicPartitions(topic_name="orders", partitions=[1, 2])]
    )
    some = await stub.FetchOffsets(
        group_pb2.FetchOffsetsRequest(group_id="loose", partitions=wanted)
    )
    (topic,) = some.topics
    assert [entry.HasField("offset") for entry in topic.partitions] == [False, True]
    none = await stub.FetchOffsets(
        group_pb2.FetchOffsetsRequest(group_id="loose", partitions=types_pb2.PartitionSet())
    )
    assert not none.topics
    assert not none.HasField("error")


async def test_commits_of_members_are_checked(stand: Stand) -> None:
    stub = stand.group_stub()
    await stub.Heartbeat(first_heartbeat())

    async def reason(**fields: Any) -> str:
        request = group_pb2.CommitOffsetsRequest(group_id="g", topics=offsets(p0=1), **fields)
        return (await stub.CommitOffsets(request)).error.reason

    assert await reason(member_id="m1", member_epoch=2) == ""
    assert await reason(member_id="m2", member_epoch=2) == "UNKNOWN_MEMBER_ID"
    assert await reason(member_id="m1", member_epoch=1) == "STALE_MEMBER_EPOCH"
    assert await reason() == "UNKNOWN_MEMBER_ID"
    assert await reason(member_id="m1") == "INVALID_REQUEST"
    assert await reason(member_id="m1", member_epoch=-1) == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"group_id": ""}, "INVALID_GROUP_ID"),
        ({"topics": []}, "INVALID_REQUEST"),
        ({"topics": [types_pb2.TopicOffsets(topic_name="orders")]}, "INVALID_REQUEST"),
        ({"topics": offsets(p0=-1)}, "INVALID_REQUEST"),
        ({"topics": offsets("", p0=1)}, "INVALID_REQUEST"),
        ({"topics": offsets("t" * 250, p0=1)}, "INVALID_TOPIC_EXCEPTION"),
    ],
)
async def test_commits_that_make_no_sense(
    stand: Stand, fields: dict[str, Any], reason: str
) -> None:
    defaults: dict[str, Any] = {"group_id": "g", "topics": offsets(p0=1)}
    request = group_pb2.CommitOffsetsRequest(**(defaults | fields))
    assert (await stand.group_stub().CommitOffsets(request)).error.reason == reason


async def test_a_commit_names_the_partitions_that_failed(stand: Stand) -> None:
    topics = [*offsets(p0=1, p9=1), *offsets("nowhere", p0=1)]
    topics[0].partitions[0].metadata = "m" * 5_000
    request = group_pb2.CommitOffsetsRequest(group_id="g", topics=topics)
    response = await stand.group_stub().CommitOffsets(request)
    failed = {
        (topic.topic_name, entry.partition): entry.error.reason
        for topic in response.failures
        for entry in topic.partitions
    }
    assert failed == {
        ("orders", 0): "OFFSET_METADATA_TOO_LARGE",
        ("orders", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        ("nowhere", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }


async def test_a_commit_by_topic_id_does_not_mean_a_topic_created_again(stand: Stand) -> None:
    topics = [
        types_pb2.TopicOffsets(
            topic_name="orders",
            topic_id=b"another id here!",
            partitions=[types_pb2.PartitionOffset(partition=0, offset=1)],
        )
    ]
    request = group_pb2.CommitOffsetsRequest(group_id="g", topics=topics)
    response = await stand.group_stub().CommitOffsets(request)
    assert response.failures[0].partitions[0].error.reason == "UNKNOWN_TOPIC_ID"


async def test_topics_that_may_not_be_seen_are_not(stand: Stand) -> None:
    rights = Rights(
        (Operation.DESCRIBE, ResourceType.TOPIC, "hidden"),
        (Operation.DESCRIBE, ResourceType.GROUP, "secret"),
    )
    async with running_stand(authorizer=rights) as guarded:
        await guarded.create_topic("hidden", 1)
        stub = guarded.group_stub()
        both = [*offsets(p0=1), *offsets("hidden", p0=1)]
        await stub.CommitOffsets(group_pb2.CommitOffsetsRequest(group_id="g", topics=both))
        everything = await stub.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="g"))
        assert [topic.topic_name for topic in everything.topics] == ["orders"]
        named = types_pb2.PartitionSet(
            topics=[types_pb2.TopicPartitions(topic_name="hidden", partitions=[0])]
        )
        asked = await stub.FetchOffsets(
            group_pb2.FetchOffsetsRequest(group_id="g", partitions=named)
        )
        assert asked.topics[0].partitions[0].error.reason == "TOPIC_AUTHORIZATION_FAILED"
        secret = await stub.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="secret"))
        assert secret.error.reason == "GROUP_AUTHORIZATION_FAILED"


async def test_a_call_that_is_given_up_leaves_nothing_behind(stand: Stand) -> None:
    stub = stand.group_stub()
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub.Heartbeat(first_heartbeat(), timeout=-1)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    # With a millisecond it may end anywhere; what counts is what comes after.
    hurried = [stub.Heartbeat(first_heartbeat(), timeout=0.001) for _ in range(20)]
    await asyncio.gather(*hurried, return_exceptions=True)
    call = stub.CommitOffsets(group_pb2.CommitOffsetsRequest(group_id="g", topics=offsets(p0=1)))
    await asyncio.sleep(0)
    call.cancel()
    assert (await stub.Heartbeat(first_heartbeat(member_id="m9"))).member_epoch >= 2
