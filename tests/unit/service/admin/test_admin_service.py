"""AdminService against a real coordinator."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable
from dataclasses import replace

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

import muster
from coordinator.core.replay.group_records import replay
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.caller import INTERNAL
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import ClassicGroupMember, GroupMetadataValue, Record
from model.responses.offsets import OffsetCommitResponse
from muster.v1 import admin_pb2, group_pb2
from tests.support.authorizers import Rights
from tests.support.imported_groups import make_imported
from tests.support.service.session_client import SessionClient
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.session.test_group_service import first_heartbeat, offsets


async def failure(call: Awaitable[object]) -> tuple[grpc.StatusCode, Status]:
    """The status of a call that must fail, with its details."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    trailers = dict(raised.value.trailing_metadata())
    return raised.value.code(), Status.FromString(trailers["grpc-status-details-bin"])


async def info(call: Awaitable[object]) -> tuple[grpc.StatusCode, ErrorInfo]:
    code, status = await failure(call)
    detail = ErrorInfo()
    assert status.details[0].Unpack(detail)
    return code, detail


async def make_groups(stand: Stand, *names: str) -> None:
    stub = stand.group_stub()
    for name in names:
        await stub.Heartbeat(first_heartbeat(group_id=name))
    await stub.CommitOffsets(group_pb2.CommitOffsetsRequest(group_id="loose", topics=offsets(p0=1)))


async def test_groups_are_listed_page_by_page(stand: Stand) -> None:
    await make_groups(stand, *(f"g{n}" for n in range(5)))
    stub = stand.admin_stub()
    names, token, pages = [], "", 0
    while pages == 0 or token:
        response = await stub.ListGroups(admin_pb2.ListGroupsRequest(page_size=2, page_token=token))
        names += [group.group_id for group in response.groups]
        token, pages = response.next_page_token, pages + 1
    assert names == ["g0", "g1", "g2", "g3", "g4", "loose"]
    assert pages == 3


async def test_groups_are_listed_by_state_and_type(stand: Stand) -> None:
    await make_groups(stand, "g0")
    stub = stand.admin_stub()
    stable = await stub.ListGroups(
        admin_pb2.ListGroupsRequest(states=[admin_pb2.GROUP_STATE_STABLE])
    )
    (group,) = stable.groups
    assert (group.group_id, group.members, group.group_epoch) == ("g0", 1, 2)
    assert group.group_type == admin_pb2.GROUP_TYPE_CONSUMER
    classic = await stub.ListGroups(
        admin_pb2.ListGroupsRequest(types=[admin_pb2.GROUP_TYPE_CLASSIC])
    )
    assert [group.group_id for group in classic.groups] == ["loose"]
    unknown = admin_pb2.ListGroupsRequest()
    unknown.MergeFromString(b"\x18\x63")  # states: 99, of a later version
    assert not (await stub.ListGroups(unknown)).groups


async def test_bad_pages_name_their_field(stand: Stand) -> None:
    stub = stand.admin_stub()
    for request, field in (
        (admin_pb2.ListGroupsRequest(page_size=-1), "page_size"),
        (admin_pb2.ListGroupsRequest(page_token="%"), "page_token"),
    ):
        code, status = await failure(stub.ListGroups(request))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        detail = BadRequest()
        assert status.details[1].Unpack(detail)
        assert detail.field_violations[0].field == field


async def test_a_group_is_described_with_its_members(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.join("m1", group_id="g", client_id="app", rack_id="r1")
    described = await stand.admin_stub().DescribeGroup(admin_pb2.DescribeGroupRequest(group_id="g"))
    group = described.group
    assert group.state == admin_pb2.GROUP_STATE_STABLE
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    (member,) = group.members
    assert member.state == admin_pb2.MEMBER_STATE_STABLE
    assert (member.client_id, member.client_host, member.rack_id) == ("app", "/127.0.0.1", "r1")
    assert list(member.subscribed_topic_names) == ["orders"]
    assert [list(topic.partitions) for topic in member.assignment] == [[0, 1, 2, 3]]
    assert [list(topic.partitions) for topic in member.target_assignment] == [[0, 1, 2, 3]]
    assert all(len(set(topic.tokens)) == 1 and topic.tokens[0] > 0 for topic in member.assignment)
    assert not any(topic.tokens for topic in member.target_assignment), "it owns none by it"


async def test_a_group_that_only_has_offsets_is_classic(stand: Stand) -> None:
    await make_groups(stand)
    described = await stand.admin_stub().DescribeGroup(
        admin_pb2.DescribeGroupRequest(group_id="loose")
    )
    assert described.group.group_type == admin_pb2.GROUP_TYPE_CLASSIC
    assert described.group.state == admin_pb2.GROUP_STATE_EMPTY


def replay_imported(stand: Stand, kind: str, name: str, **options: str) -> None:
    """Put a group into memory, as if the log had held it when the server started."""
    shard = stand.runtime.shards[stand.runtime.partition_of(GroupId(name))]
    for record in make_imported(kind, name, options):
        replay(shard, record)


async def test_a_classic_group_is_described_with_what_its_members_said(stand: Stand) -> None:
    replay_imported(
        stand, "classic", "c", type="connect", protocol="v1", generation="7", members="b,a"
    )
    response = await stand.admin_stub().DescribeGroup(admin_pb2.DescribeGroupRequest(group_id="c"))
    group = response.group
    assert (group.group_type, group.state) == (
        admin_pb2.GROUP_TYPE_CLASSIC,
        admin_pb2.GROUP_STATE_STABLE,
    )
    assert (group.protocol_type, group.protocol, group.group_epoch) == ("connect", "v1", 7)
    assert [member.member_id for member in group.members] == ["a", "b"]
    member = group.members[0]
    assert (member.client_id, member.client_host) == ("client-a", "/127.0.0.1")
    assert (member.classic_metadata, member.classic_assignment) == (b"about a", b"for a")
    assert (list(member.subscribed_topic_names), list(member.assignment)) == ([], [])


async def test_topics_and_partitions_of_classic_consumers_are_read(stand: Stand) -> None:
    """Deleted topics have no id; metadata that cannot be decoded is returned as bytes."""
    topic_id = await stand.create_topic("t", 4)
    subscription = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")
    assignment = bytes.fromhex(
        "0001 00000002 0001 74 00000002 00000001 00000003 0001 78 00000001 00000000 ffffffff"
    )
    (record,) = make_imported("classic", "c", {"type": "consumer", "protocol": "range"})
    assert isinstance(record.value, GroupMetadataValue)
    members = (
        ClassicGroupMember(
            MemberId("m"), InstanceId("i"), "c", "/h", 1, 1, subscription, assignment
        ),
        ClassicGroupMember(MemberId("n"), None, "c", "/h", 1, 1, b"?", b""),
    )
    shard = stand.runtime.shards[stand.runtime.partition_of(GroupId("c"))]
    replay(shard, Record(record.key, replace(record.value, leader=MemberId("m"), members=members)))
    response = await stand.admin_stub().DescribeGroup(admin_pb2.DescribeGroupRequest(group_id="c"))
    first, second = response.group.members
    assert (list(first.subscribed_topic_names), first.instance_id) == (["t"], "i")
    assert [(t.topic_name, t.topic_id, list(t.partitions)) for t in first.assignment] == [
        ("t", topic_id, [1, 3]),
        ("x", b"", [0]),
    ]
    assert (list(second.subscribed_topic_names), list(second.assignment)) == ([], [])
    assert second.classic_metadata == b"?"


async def test_groups_that_are_not_served_are_listed(stand: Stand) -> None:
    replay_imported(stand, "share", "s", epoch="3", members="a,b")
    replay_imported(stand, "streams", "t", epoch="3", members="a@3", validated="0")
    stub = stand.admin_stub()
    types = [admin_pb2.GROUP_TYPE_SHARE, admin_pb2.GROUP_TYPE_STREAMS]
    response = await stub.ListGroups(admin_pb2.ListGroupsRequest(types=types))
    assert [
        (group.group_id, group.group_type, group.state, group.members, group.group_epoch)
        for group in response.groups
    ] == [
        ("s", admin_pb2.GROUP_TYPE_SHARE, admin_pb2.GROUP_STATE_STABLE, 2, 3),
        ("t", admin_pb2.GROUP_TYPE_STREAMS, admin_pb2.GROUP_STATE_NOT_READY, 1, 3),
    ]
    states = [admin_pb2.GROUP_STATE_NOT_READY]
    response = await stub.ListGroups(admin_pb2.ListGroupsRequest(states=states))
    assert [group.group_id for group in response.groups] == ["t"]
    code, status = await failure(stub.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id="s")))
    assert code is grpc.StatusCode.NOT_FOUND
    assert "not a consumer group or a classic group: it can be listed" in status.message


async def test_a_group_that_is_not_there(stand: Stand) -> None:
    stub = stand.admin_stub()
    code, detail = await info(stub.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id="x")))
    assert code is grpc.StatusCode.NOT_FOUND
    assert (detail.reason, detail.domain) == ("GROUP_ID_NOT_FOUND", "muster")
    assert dict(detail.metadata) == {"kafka_error_code": "69", "group_id": "x"}
    code, detail = await info(stub.PlanMigration(admin_pb2.PlanMigrationRequest()))
    assert (code, detail.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_GROUP_ID")


async def test_offsets_of_no_group_are_described_and_deleted(stand: Stand) -> None:
    """Old clients commit with the empty group id, which Kafka still serves."""
    topics = (TopicOffsets(TopicName("orders"), None, make_offset_columns([(0, 5, -1, "")])),)
    commit = OffsetCommit(INTERNAL, GroupId(""), MemberId(""), None, topics)
    assert isinstance(await stand.runtime.call(commit), OffsetCommitResponse)
    admin, groups = stand.admin_stub(), stand.group_stub()
    described = await admin.DescribeGroup(admin_pb2.DescribeGroupRequest())
    assert described.group.group_type == admin_pb2.GROUP_TYPE_CLASSIC
    fetched = await groups.FetchOffsets(group_pb2.FetchOffsetsRequest())
    assert [topic.topic_name for topic in fetched.topics] == ["orders"]
    await admin.DeleteGroup(admin_pb2.DeleteGroupRequest())
    code, _ = await info(admin.DescribeGroup(admin_pb2.DescribeGroupRequest()))
    assert code is grpc.StatusCode.NOT_FOUND


async def test_a_topic_lives(stand: Stand) -> None:
    stub = stand.admin_stub()
    tried = await stub.CreateTopic(
        admin_pb2.CreateTopicRequest(topic_name="new", num_partitions=3, validate_only=True)
    )
    assert (tried.topic.num_partitions, tried.topic.topic_id) == (3, b"")
    created = await stub.CreateTopic(
        admin_pb2.CreateTopicRequest(topic_name="new", num_partitions=3)
    )
    assert len(created.topic.topic_id) == 16
    tried_to_grow = await stub.GrowTopic(
        admin_pb2.GrowTopicRequest(topic_name="new", num_partitions=5, validate_only=True)
    )
    assert tried_to_grow.topic.num_partitions == 5
    listed = await stub.ListTopics(admin_pb2.ListTopicsRequest())
    assert [(t.topic_name, t.num_partitions) for t in listed.topics] == [("new", 3), ("orders", 4)]
    grown = await stub.GrowTopic(admin_pb2.GrowTopicRequest(topic_name="new", num_partitions=5))
    assert grown.topic.num_partitions == 5
    assert grown.topic.topic_id == created.topic.topic_id
    tried = await stub.DeleteTopic(
        admin_pb2.DeleteTopicRequest(topic_name="new", validate_only=True)
    )
    assert tried.topic == grown.topic
    deleted = await stub.DeleteTopic(admin_pb2.DeleteTopicRequest(topic_id=created.topic.topic_id))
    assert deleted.topic.topic_name == "new"
    page = await stub.ListTopics(admin_pb2.ListTopicsRequest(page_size=1))
    assert [topic.topic_name for topic in page.topics] == ["orders"]
    assert page.next_page_token == ""


async def test_racks_of_a_topic_are_said_and_forgotten(stand: Stand) -> None:
    stub = stand.admin_stub()

    async def say(*racks: str, **fields: bool) -> list[list[str]]:
        request = admin_pb2.SetTopicRacksRequest(
            topic_name="orders",
            replica_racks=[admin_pb2.ReplicaRacks(names=text.split()) for text in racks],
            **fields,
        )
        answer = await stub.SetTopicRacks(request)
        return [list(each.names) for each in answer.topic.replica_racks]

    async def known() -> list[list[str]]:
        listed = await stub.ListTopics(admin_pb2.ListTopicsRequest())
        return [list(each.names) for each in listed.topics[0].replica_racks]

    assert await say("a b", "", "c", validate_only=True) == [["a", "b"], [], ["c"]]
    assert await known() == []
    assert await say("a b", "", "c") == [["a", "b"], [], ["c"]]
    assert await known() == [["a", "b"], [], ["c"]]
    await stub.GrowTopic(admin_pb2.GrowTopicRequest(topic_name="orders", num_partitions=6))
    assert await known() == [["a", "b"], [], ["c"]]
    assert await say() == await known() == []

    too_many = admin_pb2.SetTopicRacksRequest(
        topic_name="orders", replica_racks=[admin_pb2.ReplicaRacks(names=["a"])] * 7
    )
    code, detail = await info(stub.SetTopicRacks(too_many))
    assert (code, detail.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    missing = admin_pb2.SetTopicRacksRequest(topic_name="nobody")
    code, detail = await info(stub.SetTopicRacks(missing))
    assert (code, detail.reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION")


async def test_members_learn_of_a_topic_that_grew(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.settle("m1", await client.join("m1"))
    await stand.admin_stub().GrowTopic(
        admin_pb2.GrowTopicRequest(topic_name="orders", num_partitions=6)
    )
    told = await client.expect("assignment", "m1")
    assert len(told.assignment.topics[0].partitions) == 6


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (
            admin_pb2.CreateTopicRequest(topic_name="orders", num_partitions=1),
            grpc.StatusCode.ALREADY_EXISTS,
            "TOPIC_ALREADY_EXISTS",
        ),
        (
            admin_pb2.CreateTopicRequest(topic_name="a/b", num_partitions=1),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_TOPIC_EXCEPTION",
        ),
        (
            admin_pb2.CreateTopicRequest(num_partitions=1),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_TOPIC_EXCEPTION",
        ),
        (
            admin_pb2.CreateTopicRequest(topic_name="n"),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_REQUEST",
        ),
        (
            admin_pb2.CreateTopicRequest(topic_name="n", num_partitions=1, request_id="r" * 1_025),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_REQUEST",
        ),
        (
            admin_pb2.GrowTopicRequest(topic_name="orders", num_partitions=2),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_PARTITIONS",
        ),
        (
            admin_pb2.GrowTopicRequest(topic_name="nowhere", num_partitions=2),
            grpc.StatusCode.NOT_FOUND,
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
        (
            admin_pb2.DeleteTopicRequest(topic_name="nowhere"),
            grpc.StatusCode.NOT_FOUND,
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
        (
            admin_pb2.DeleteTopicRequest(topic_id=b"another id here!"),
            grpc.StatusCode.NOT_FOUND,
            "UNKNOWN_TOPIC_ID",
        ),
        (admin_pb2.DeleteTopicRequest(), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    ],
)
async def test_topics_that_make_no_sense(
    stand: Stand,
    request_: admin_pb2.CreateTopicRequest
    | admin_pb2.GrowTopicRequest
    | admin_pb2.DeleteTopicRequest,
    code: grpc.StatusCode,
    reason: str,
) -> None:
    stub = stand.admin_stub()
    method = getattr(stub, type(request_).__name__.removesuffix("Request"))
    found, detail = await info(method(request_))
    assert (found, detail.reason) == (code, reason)
    assert len(stand.runtime.image.by_name) == 1


async def test_topic_id_and_name_must_mean_the_same(stand: Stand) -> None:
    topic_id = await stand.create_topic("other", 1)
    request = admin_pb2.DeleteTopicRequest(topic_name="orders", topic_id=topic_id)
    code, detail = await info(stand.admin_stub().DeleteTopic(request))
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert detail.reason == "INCONSISTENT_TOPIC_ID"


async def test_a_repeated_request_id_creates_once(stand: Stand) -> None:
    stub = stand.admin_stub()
    request = admin_pb2.CreateTopicRequest(
        topic_name="new", num_partitions=1, request_id=str(uuid.uuid4())
    )
    assert await stub.CreateTopic(request) == await stub.CreateTopic(request)
    request.num_partitions = 2
    code, detail = await info(stub.CreateTopic(request))
    assert (code, detail.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")


async def test_what_may_not_be_seen_or_done_is_not() -> None:
    rights = Rights(
        (Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME),
        (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
        (Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME),
        (Operation.DESCRIBE, ResourceType.GROUP, "secret"),
        (Operation.DESCRIBE, ResourceType.TOPIC, "hidden"),
        (Operation.CREATE, ResourceType.TOPIC, "forbidden"),
        (Operation.ALTER, ResourceType.TOPIC, "orders"),
        (Operation.DELETE, ResourceType.TOPIC, "orders"),
    )
    async with running_stand(authorizer=rights) as guarded:
        await guarded.create_topic("hidden", 1)
        await make_groups(guarded, "g0", "secret")
        stub = guarded.admin_stub()
        groups = await stub.ListGroups(admin_pb2.ListGroupsRequest())
        assert [group.group_id for group in groups.groups] == ["g0", "loose"]
        topics = await stub.ListTopics(admin_pb2.ListTopicsRequest())
        assert [topic.topic_name for topic in topics.topics] == ["orders"]
        for call, reason in (
            (
                stub.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id="secret")),
                "GROUP_AUTHORIZATION_FAILED",
            ),
            (
                stub.CreateTopic(
                    admin_pb2.CreateTopicRequest(topic_name="forbidden", num_partitions=1)
                ),
                "TOPIC_AUTHORIZATION_FAILED",
            ),
            (
                stub.GrowTopic(admin_pb2.GrowTopicRequest(topic_name="orders", num_partitions=9)),
                "TOPIC_AUTHORIZATION_FAILED",
            ),
            (
                stub.DeleteTopic(admin_pb2.DeleteTopicRequest(topic_name="orders")),
                "TOPIC_AUTHORIZATION_FAILED",
            ),
        ):
            code, detail = await info(call)
            assert (code, detail.reason) == (grpc.StatusCode.PERMISSION_DENIED, reason)
        # A topic that the caller may not describe looks like one that does not exist.
        hidden = await failure(stub.DeleteTopic(admin_pb2.DeleteTopicRequest(topic_name="hidden")))
        absent = await failure(stub.DeleteTopic(admin_pb2.DeleteTopicRequest(topic_name="absent")))
        assert hidden[0] is absent[0]
        assert hidden[1].message == absent[1].message
        client = SessionClient(guarded.group_stub())
        await client.join("m1", group_id="g1", topics=["orders"])
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
        code, detail = await info(stub.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id="g1")))
        assert detail.reason == "TOPIC_AUTHORIZATION_FAILED"


async def test_a_topic_of_a_classic_group_is_for_those_who_may_see_it() -> None:
    """As for a consumer group, because the response names the topics of its members."""
    rights = Rights((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
    async with (
        running_stand(authorizer=rights, initial_rebalance_delay_ms=0) as guarded,
        muster.ClassicMember(guarded.target, "c", topics=["orders"]) as member,
    ):
        request = admin_pb2.DescribeGroupRequest(group_id="c")
        _, detail = await info(guarded.admin_stub().DescribeGroup(request))
        assert detail.reason == "TOPIC_AUTHORIZATION_FAILED"
        rights.denied.clear()
        group = await guarded.admin_stub().DescribeGroup(request)
        assert [each.member_id for each in group.group.members] == [member.member_id]


async def test_a_repeated_deletion_is_answered_to_who_may_delete() -> None:
    rights = Rights((Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME))
    async with running_stand(authorizer=rights) as guarded:
        stub = guarded.admin_stub()
        request = admin_pb2.DeleteTopicRequest(topic_name="orders", request_id="r")
        answer = await stub.DeleteTopic(request)
        assert await stub.DeleteTopic(request) == answer
        rights.denied.add((Operation.DELETE, ResourceType.TOPIC, "orders"))
        code, detail = await info(stub.DeleteTopic(request))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert detail.reason == "TOPIC_AUTHORIZATION_FAILED"
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
        hidden = await failure(stub.DeleteTopic(request))
        absent = admin_pb2.DeleteTopicRequest(topic_name="absent", request_id="s")
        assert hidden[1].message == (await failure(stub.DeleteTopic(absent)))[1].message


async def test_a_group_says_what_the_caller_may_do_to_it() -> None:
    rights = Rights((Operation.ALTER_CONFIGS, ResourceType.GROUP, "g"))
    async with running_stand(authorizer=rights) as stand:
        await make_groups(stand, "g")
        ask = admin_pb2.DescribeGroupRequest(group_id="g", include_authorized_operations=True)
        answer = await stand.admin_stub().DescribeGroup(ask)
        assert answer.authorized_operations == ["READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS"]
        silent = await stand.admin_stub().DescribeGroup(
            admin_pb2.DescribeGroupRequest(group_id="g")
        )
        assert not silent.authorized_operations


async def test_groups_of_a_topic_are_those_that_subscribe_to_it() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        await stand.create_topic("payments", 1)
        await make_groups(stand, "g0", "g1")
        stub = stand.admin_stub()
        for topic, names in (("orders", ["g0", "g1"]), ("payments", []), ("nothing", [])):
            answer = await stub.ListGroups(admin_pb2.ListGroupsRequest(topic_name=topic))
            assert [group.group_id for group in answer.groups] == names
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
        code, _ = await info(stub.ListGroups(admin_pb2.ListGroupsRequest(topic_name="orders")))
        assert code is grpc.StatusCode.PERMISSION_DENIED
