"""AdminService.RemoveMembers: what it shows to whom, previews, and repeated requests."""

from __future__ import annotations

import grpc
import pytest

from coordinator.service.admin.member_removal import MEMBERS_MAX
from model.access.acls import Operation, ResourceType
from muster.v1 import admin_pb2
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import info, make_groups

MEMBER = admin_pb2.MemberToRemove(member_id="m1")
Request = admin_pb2.RemoveMembersRequest


async def remaining(stand: Stand) -> list[str]:
    request = admin_pb2.DescribeGroupRequest(group_id="g")
    described = await stand.admin_stub().DescribeGroup(request)
    return [member.member_id for member in described.group.members]


async def test_a_removed_member_is_shown_as_it_was(stand: Stand) -> None:
    await make_groups(stand, "g")
    stub = stand.admin_stub()
    shown = await stub.RemoveMembers(Request(group_id="g", members=[MEMBER], validate_only=True))
    assert await remaining(stand) == ["m1"]
    removed = await stub.RemoveMembers(
        Request(group_id="g", members=[MEMBER], preview=shown.preview)
    )
    assert removed == shown
    (member,) = removed.members
    assert [topic.topic_name for topic in member.assignment] == ["orders"]
    assert (removed.remaining, await remaining(stand)) == (0, [])


async def test_a_preview_holds_until_the_group_changes(stand: Stand) -> None:
    await make_groups(stand, "g")
    stub = stand.admin_stub()
    stale = Request(group_id="g", members=[MEMBER], preview="consumer-1-1")
    code, detail = await info(stub.RemoveMembers(stale))
    assert (code, detail.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "POLICY_VIOLATION")
    assert await remaining(stand) == ["m1"]


async def test_a_repeated_request_has_the_same_answer(stand: Stand) -> None:
    await make_groups(stand, "g")
    stub = stand.admin_stub()
    request = Request(
        group_id="g", members=[MEMBER], request_id="0190a5b0-7c0e-7c6c-9f6e-0f6a3d7f2b11"
    )
    first = await stub.RemoveMembers(request)
    assert await stub.RemoveMembers(request) == first
    request.request_id = ""
    code, detail = await info(stub.RemoveMembers(request))
    assert (code, detail.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "UNKNOWN_MEMBER_ID")


async def test_topics_that_the_caller_may_not_describe_are_left_out() -> None:
    rights = Rights((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
    async with running_stand(authorizer=rights) as stand:
        rights.denied.clear()
        await make_groups(stand, "g")
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
        removed = await stand.admin_stub().RemoveMembers(Request(group_id="g", members=[MEMBER]))
        (member,) = removed.members
        assert (member.member_id, removed.remaining) == ("m1", 0)
        assert b"orders" not in removed.SerializeToString()


@pytest.mark.parametrize(
    "members",
    [
        [],
        [admin_pb2.MemberToRemove()],
        [MEMBER] * (MEMBERS_MAX + 1),
        [admin_pb2.MemberToRemove(member_id="m" * 70_000)],
        [admin_pb2.MemberToRemove(instance_id="i" * 70_000)],
    ],
)
async def test_members_that_cannot_be_meant_are_refused(
    stand: Stand, members: list[admin_pb2.MemberToRemove]
) -> None:
    await make_groups(stand, "g")
    code, _ = await info(stand.admin_stub().RemoveMembers(Request(group_id="g", members=members)))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert await remaining(stand) == ["m1"]
