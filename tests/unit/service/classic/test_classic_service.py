"""ClassicService: classic groups over gRPC, against a real coordinator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from coordinator.service.wire.answer_slices import SLICE
from model.access.acls import Operation, ResourceType
from model.caller import INTERNAL
from model.commands.classic import JoinGroup, JoinProtocol, SyncGroup
from model.commands.groups import DescribeGroups
from model.ids import GroupId, MemberId
from model.responses.classic import JoinGroupResponse, SyncGroupResponse
from model.responses.groups import DescribeGroupsResponse
from muster.v1 import classic_pb2, group_pb2
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until, until_answered
from tests.unit.service.session.test_group_service import offsets

if TYPE_CHECKING:
    from muster.v1.classic_pb2_grpc import ClassicServiceAsyncStub


@pytest.fixture
async def classic() -> AsyncIterator[Stand]:
    """A server on which classic groups do not wait for more members at first."""
    async with running_stand(initial_rebalance_delay_ms=0) as running:
        yield running


def join_request(**fields: Any) -> classic_pb2.JoinGroupRequest:
    defaults: dict[str, Any] = {
        "group_id": "g",
        "client_id": "app",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "work",
        "protocols": [classic_pb2.GroupProtocol(name="even", metadata=b"me")],
    }
    return classic_pb2.JoinGroupRequest(**(defaults | fields))


def sync_request(
    member_id: str, generation: int, assigned: dict[str, bytes] | None = None, **fields: Any
) -> classic_pb2.SyncGroupRequest:
    defaults: dict[str, Any] = {
        "group_id": "g",
        "member_id": member_id,
        "generation": generation,
        "protocol_type": "work",
        "protocol_name": "even",
        "assignments": [
            classic_pb2.MemberAssignment(member_id=who, assignment=what)
            for who, what in (assigned or {}).items()
        ],
    }
    return classic_pb2.SyncGroupRequest(**(defaults | fields))


def beat(member_id: str, generation: int, **fields: Any) -> classic_pb2.ClassicHeartbeatRequest:
    defaults: dict[str, Any] = {"group_id": "g", "member_id": member_id, "generation": generation}
    return classic_pb2.ClassicHeartbeatRequest(**(defaults | fields))


async def get_id(stub: ClassicServiceAsyncStub) -> str:
    """The member id that the server generates for a new member (KIP-394)."""
    refused = await stub.JoinGroup(join_request())
    assert refused.error.reason == "MEMBER_ID_REQUIRED"
    assert refused.member_id.startswith("app-")
    return refused.member_id


async def form_pair(
    stub: ClassicServiceAsyncStub,
) -> tuple[classic_pb2.JoinGroupResponse, classic_pb2.JoinGroupResponse]:
    """A group of two; the leader's answer first."""
    one = await stub.JoinGroup(join_request(member_id=await get_id(stub)))
    joining = asyncio.ensure_future(stub.JoinGroup(join_request(member_id=await get_id(stub))))
    await until_told(stub, one.member_id, one.generation, "REBALANCE_IN_PROGRESS")
    led = await stub.JoinGroup(join_request(member_id=one.member_id))
    return led, await joining


async def until_told(
    stub: ClassicServiceAsyncStub, member_id: str, generation: int, reason: str
) -> None:
    """Send heartbeats until one returns this error."""
    await until_answered(
        lambda: stub.Heartbeat(beat(member_id, generation)),
        lambda answer: answer.error.reason == reason,
        f"{member_id} is told {reason}",
    )


async def describe(stand: Stand, group_id: str = "g") -> Any:
    response = await stand.runtime.call(DescribeGroups(INTERNAL, (GroupId(group_id),)))
    assert isinstance(response, DescribeGroupsResponse)
    return response.groups[0]


async def test_two_members_from_join_to_leave(classic: Stand) -> None:
    stub = classic.classic_stub()
    leader, follower = await form_pair(stub)
    assert leader.generation == follower.generation == 2
    assert leader.leader == follower.leader == leader.member_id
    assert (leader.protocol_type, leader.protocol_name) == ("work", "even")
    assert {member.member_id: member.metadata for member in leader.members} == {
        leader.member_id: b"me",
        follower.member_id: b"me",
    }
    assert not follower.members
    syncing = asyncio.ensure_future(stub.SyncGroup(sync_request(follower.member_id, 2)))
    await until(lambda: len(classic.server._waits) == 1)
    assigned = {leader.member_id: b"0,1", follower.member_id: b"2,3"}
    led = await stub.SyncGroup(sync_request(leader.member_id, 2, assigned))
    assert (led.assignment, (await syncing).assignment) == (b"0,1", b"2,3")
    assert not (await stub.Heartbeat(beat(follower.member_id, 2))).HasField("error")

    commit = group_pb2.CommitOffsetsRequest(
        group_id="g", member_id=follower.member_id, member_epoch=2, topics=offsets(p2=7)
    )
    groups = classic.group_stub()
    assert not (await groups.CommitOffsets(commit)).HasField("error")
    commit.member_epoch = 1
    assert (await groups.CommitOffsets(commit)).error.reason == "ILLEGAL_GENERATION"

    leaving = [classic_pb2.LeavingMember(member_id=who) for who in (leader.member_id, "nobody")]
    left = await stub.LeaveGroup(classic_pb2.LeaveGroupRequest(group_id="g", members=leaving))
    assert [(member.member_id, member.error.reason) for member in left.members] == [
        (leader.member_id, ""),
        ("nobody", "UNKNOWN_MEMBER_ID"),
    ]
    await until_told(stub, leader.member_id, 2, "UNKNOWN_MEMBER_ID")
    await until_told(stub, follower.member_id, 2, "REBALANCE_IN_PROGRESS")


async def test_the_leader_says_that_it_cannot_assign(classic: Stand) -> None:
    stub = classic.classic_stub()
    leader, follower = await form_pair(stub)
    syncing = asyncio.ensure_future(stub.SyncGroup(sync_request(follower.member_id, 2)))
    await until(lambda: len(classic.server._waits) == 1)
    failure = classic_pb2.AssignmentFailure(error_code=-1, error_message="they do not agree")
    failed = await stub.SyncGroup(sync_request(leader.member_id, 2, failure=failure))
    waited = await syncing
    for answer in (failed, waited):
        assert (answer.error.reason, answer.error.error_message) == (
            "UNKNOWN_SERVER_ERROR",
            "they do not agree",
        )
    await until_told(stub, follower.member_id, 2, "REBALANCE_IN_PROGRESS")
    again = await asyncio.gather(
        *(stub.JoinGroup(join_request(member_id=m.member_id)) for m in (leader, follower))
    )
    assert {answer.generation for answer in again} == {3}


async def test_a_failure_may_only_name_errors_that_clients_know(classic: Stand) -> None:
    stub = classic.classic_stub()
    one = await stub.JoinGroup(join_request(member_id=await get_id(stub)))
    for failure in (
        classic_pb2.AssignmentFailure(),
        classic_pb2.AssignmentFailure(error_code=31_337),
        classic_pb2.AssignmentFailure(error_code=25, error_message="m" * 2_000),
    ):
        refused = await stub.SyncGroup(sync_request(one.member_id, 1, failure=failure))
        assert refused.error.reason == "INVALID_REQUEST"
    both = classic_pb2.AssignmentFailure(error_code=25)
    request = sync_request(one.member_id, 1, {one.member_id: b"all"}, failure=both)
    assert (await stub.SyncGroup(request)).error.reason == "INVALID_REQUEST"
    assert (await describe(classic)).state == "CompletingRebalance"


async def test_a_wait_that_is_cancelled_does_no_harm(classic: Stand) -> None:
    stub = classic.classic_stub()
    one = await stub.JoinGroup(join_request(member_id=await get_id(stub)))
    other = await get_id(stub)
    joining = stub.JoinGroup(join_request(member_id=other))
    await until(lambda: len(classic.server._waits) == 1)
    joining.cancel()
    await until(lambda: len(classic.server._waits) == 0)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub.JoinGroup(join_request(member_id=other), timeout=0.05)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    # It is still a member and may retry.
    led, followed = await asyncio.gather(
        stub.JoinGroup(join_request(member_id=one.member_id)),
        stub.JoinGroup(join_request(member_id=other)),
    )
    assert led.generation == followed.generation == 2
    follower = other if led.leader != other else one.member_id
    syncing = stub.SyncGroup(sync_request(follower, 2))
    await until(lambda: len(classic.server._waits) == 1)
    syncing.cancel()
    await until(lambda: len(classic.server._waits) == 0)
    await stub.SyncGroup(sync_request(led.leader, 2, {follower: b"all"}))
    assert (await stub.SyncGroup(sync_request(follower, 2))).assignment == b"all"


async def test_heartbeats_say_whether_the_member_waits_for_others(classic: Stand) -> None:
    """A held member is not removed before its SyncGroup is answered, so its lease may continue."""
    stub = classic.classic_stub()
    led, followed = await form_pair(stub)
    leader, follower = led.member_id, followed.member_id
    syncing = asyncio.ensure_future(stub.SyncGroup(sync_request(follower, 2)))
    await until(lambda: len(classic.server._waits) == 1)
    assert (await stub.Heartbeat(beat(follower, 2))).is_held
    assert not (await stub.Heartbeat(beat(leader, 2))).is_held
    await stub.SyncGroup(sync_request(leader, 2, {follower: b"all"}))
    await syncing
    assert not (await stub.Heartbeat(beat(follower, 2))).is_held
    joining = stub.JoinGroup(
        join_request(
            member_id=follower, protocols=[classic_pb2.GroupProtocol(name="even", metadata=b"new")]
        )
    )
    await until_told(stub, leader, 2, "REBALANCE_IN_PROGRESS")
    told = await stub.Heartbeat(beat(follower, 2))
    assert (told.error.reason, told.is_held) == ("REBALANCE_IN_PROGRESS", True)
    assert not (await stub.Heartbeat(beat(leader, 2))).is_held
    # Its call was cancelled, which does not change how long the group waits for it.
    joining.cancel()
    await until(lambda: len(classic.server._waits) == 0)
    assert (await stub.Heartbeat(beat(follower, 2))).is_held


async def test_who_asks_twice_is_answered_once_and_the_older_call_told_so(classic: Stand) -> None:
    stub = classic.classic_stub()
    one = await stub.JoinGroup(join_request(member_id=await get_id(stub)))
    other = await get_id(stub)
    first = asyncio.ensure_future(stub.JoinGroup(join_request(member_id=other)))
    await until(lambda: len(classic.server._waits) == 1)
    second = asyncio.ensure_future(stub.JoinGroup(join_request(member_id=other)))
    assert (await first).error.reason == "REBALANCE_IN_PROGRESS"
    await stub.JoinGroup(join_request(member_id=one.member_id))
    assert (await second).generation == 2


async def test_a_server_that_stops_does_not_wait_for_members(classic: Stand) -> None:
    stub = classic.classic_stub()
    await stub.JoinGroup(join_request(member_id=await get_id(stub)))
    joining = asyncio.ensure_future(stub.JoinGroup(join_request(member_id=await get_id(stub))))
    await until(lambda: len(classic.server._waits) == 1)
    begun = time.monotonic()
    await classic.server.stop(20)
    assert time.monotonic() - begun < 10
    assert (await joining).error.reason == "NOT_COORDINATOR"


async def test_a_static_member_comes_back_and_its_leader_skips(classic: Stand) -> None:
    stub = classic.classic_stub()
    joined = await stub.JoinGroup(join_request(instance_id="i"))
    assert joined.member_id.startswith("i-")
    me = joined.member_id
    await stub.SyncGroup(sync_request(me, 1, {me: b"all"}, instance_id="i"))
    back = await stub.JoinGroup(join_request(instance_id="i"))
    assert (back.generation, back.skip_assignment, back.leader) == (1, True, back.member_id)
    fenced = await stub.Heartbeat(beat(me, 1, instance_id="i"))
    assert fenced.error.reason == "FENCED_INSTANCE_ID"
    synced = await stub.SyncGroup(sync_request(back.member_id, 1, instance_id="i"))
    assert synced.assignment == b"all"
    gone = classic_pb2.LeaveGroupRequest(
        group_id="g", members=[classic_pb2.LeavingMember(instance_id="i", reason="removed")]
    )
    left = await stub.LeaveGroup(gone)
    assert [(each.instance_id, each.HasField("error")) for each in left.members] == [("i", False)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"group_id": ""}, "INVALID_GROUP_ID"),
        ({"session_timeout_ms": 1}, "INVALID_SESSION_TIMEOUT"),
        ({"session_timeout_ms": -1, "rebalance_timeout_ms": 0}, "INVALID_SESSION_TIMEOUT"),
        ({"rebalance_timeout_ms": -1}, "INVALID_REQUEST"),
        ({"member_id": "stranger"}, "UNKNOWN_MEMBER_ID"),
        ({"member_id": "m" * 1_025}, "INVALID_REQUEST"),
        ({"instance_id": "i" * 1_025}, "INVALID_REQUEST"),
        ({"client_id": "c" * 1_025}, "INVALID_REQUEST"),
        ({"protocol_type": "t" * 1_025}, "INVALID_REQUEST"),
        ({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocols": []}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocols": [classic_pb2.GroupProtocol(name="p" * 1_025)]}, "INVALID_REQUEST"),
        ({"reason": "r" * 1_025}, "INVALID_REQUEST"),
    ],
)
async def test_joins_that_make_no_sense(
    classic: Stand, fields: dict[str, Any], reason: str
) -> None:
    stub = classic.classic_stub()
    answer = await stub.JoinGroup(join_request(**fields))
    assert (answer.error.reason, answer.member_id) == (reason, "")
    assert (await describe(classic)).state == "Dead"


async def test_syncs_heartbeats_and_leaves_that_make_no_sense(classic: Stand) -> None:
    stub = classic.classic_stub()
    joined = await stub.JoinGroup(join_request(member_id=await get_id(stub)))
    me = joined.member_id

    async def of_sync(**fields: Any) -> str:
        request = sync_request(fields.pop("member_id", me), fields.pop("generation", 1), **fields)
        return (await stub.SyncGroup(request)).error.reason

    assert await of_sync(group_id="") == "INVALID_GROUP_ID"
    assert await of_sync(protocol_type="") == "INCONSISTENT_GROUP_PROTOCOL"
    assert await of_sync(protocol_name="odd") == "INCONSISTENT_GROUP_PROTOCOL"
    assert await of_sync(generation=7) == "ILLEGAL_GENERATION"
    assert await of_sync(member_id="stranger") == "UNKNOWN_MEMBER_ID"
    assert await of_sync(instance_id="i") == "UNKNOWN_MEMBER_ID"

    async def of_beat(**fields: Any) -> str:
        request = beat(fields.pop("member_id", me), fields.pop("generation", 1), **fields)
        return (await stub.Heartbeat(request)).error.reason

    assert await of_beat(group_id="") == "INVALID_GROUP_ID"
    assert await of_beat(group_id="other") == "UNKNOWN_MEMBER_ID"
    assert await of_beat(member_id="m" * 1_025) == "INVALID_REQUEST"
    assert await of_beat(generation=-1) == "ILLEGAL_GENERATION"
    assert await of_beat() == ""

    async def of_leave(**fields: Any) -> str:
        return (await stub.LeaveGroup(classic_pb2.LeaveGroupRequest(**fields))).error.reason

    assert await of_leave() == "INVALID_GROUP_ID"
    long_reason = [classic_pb2.LeavingMember(member_id=me, reason="r" * 1_025)]
    assert await of_leave(group_id="g", members=long_reason) == "INVALID_REQUEST"
    assert await of_leave(group_id="nowhere") in ("", "UNKNOWN_MEMBER_ID")
    # More members than one slice handles: all are validated before the first one leaves.
    many = [classic_pb2.LeavingMember(member_id=who) for who in (me, *map(str, range(SLICE)))]
    assert await of_leave(group_id="g", members=[*many, *long_reason]) == "INVALID_REQUEST"
    assert await of_beat() == ""
    left = await stub.LeaveGroup(classic_pb2.LeaveGroupRequest(group_id="g", members=many))
    assert [member.member_id for member in left.members] == [each.member_id for each in many]
    reasons = [member.error.reason for member in left.members]
    assert reasons == ["", *["UNKNOWN_MEMBER_ID"] * SLICE]
    assert await of_beat() == "UNKNOWN_MEMBER_ID"


async def test_groups_are_authorised() -> None:
    rights = Rights((Operation.READ, ResourceType.GROUP, "secret"))
    async with running_stand(authorizer=rights) as guarded:
        stub = guarded.classic_stub()
        answers: Sequence[Any] = (
            await stub.JoinGroup(join_request(group_id="secret")),
            await stub.SyncGroup(sync_request("m", 1, group_id="secret")),
            await stub.Heartbeat(beat("m", 1, group_id="secret")),
            await stub.LeaveGroup(classic_pb2.LeaveGroupRequest(group_id="secret")),
        )
        assert {answer.error.reason for answer in answers} == {"GROUP_AUTHORIZATION_FAILED"}


async def test_members_of_both_doors_share_a_group(classic: Stand) -> None:
    """The other member is submitted as a command, as the Kafka listener does."""
    stub = classic.classic_stub()
    led = await stub.JoinGroup(join_request(member_id=await get_id(stub)))
    command = JoinGroup(
        INTERNAL,
        GroupId("g"),
        None,
        MemberId("wire"),
        10_000,
        60_000,
        "work",
        (JoinProtocol("even", b"it"),),
        requires_member_id=False,
    )
    joining = asyncio.ensure_future(classic.runtime.call(command))
    await until_told(stub, led.member_id, 1, "REBALANCE_IN_PROGRESS")
    led = await stub.JoinGroup(join_request(member_id=led.member_id))
    assert {member.member_id: member.metadata for member in led.members} == {
        led.member_id: b"me",
        "wire": b"it",
    }
    assert isinstance(await joining, JoinGroupResponse)
    await stub.SyncGroup(sync_request(led.member_id, 2, {"wire": b"yours"}))
    synced = await classic.runtime.call(SyncGroup(INTERNAL, GroupId("g"), MemberId("wire"), 2))
    assert isinstance(synced, SyncGroupResponse)
    assert synced.assignment == b"yours"


async def test_malformed_requests_end_the_call_by_name(classic: Stand) -> None:
    channel = classic.channel()
    for method in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"):
        call = channel.unary_unary(f"/muster.v1.ClassicService/{method}")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(b"\xff\xff\xff")
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
