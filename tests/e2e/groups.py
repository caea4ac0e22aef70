"""What groups look like from outside, over gRPC, and waiting for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import grpc.aio

from muster.v1 import admin_pb2, admin_pb2_grpc
from tests.support.waiting import Patience, until_answered

POLL_S = 0.05


class MemberView(NamedTuple):
    """A member as DescribeGroup shows it: its epoch and (topic, partition) pairs."""

    member_epoch: int
    assigned: frozenset[tuple[str, int]]


class GroupView(NamedTuple):
    """A group as DescribeGroup shows it."""

    state: str
    group_epoch: int
    assignment_epoch: int
    members: dict[str, MemberView]

    @property
    def owners(self) -> dict[tuple[str, int], str]:
        """The member that holds each partition; asserts that there is one."""
        owners: dict[tuple[str, int], str] = {}
        for member_id, member in self.members.items():
            for where in member.assigned:
                assert where not in owners, f"{where} has two owners"
                owners[where] = member_id
        return owners


async def describe(target: str, group_id: str) -> GroupView:
    """The group now."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        response = await stub.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id=group_id))
    group = response.group
    return GroupView(
        admin_pb2.GroupState.Name(group.state),
        group.group_epoch,
        group.assignment_epoch,
        {
            member.member_id: MemberView(
                member.member_epoch,
                frozenset(
                    (topic.topic_name, partition)
                    for topic in member.assignment
                    for partition in topic.partitions
                ),
            )
            for member in group.members
        },
    )


async def find(target: str, group_id: str) -> GroupView | None:
    """The group now; None where nobody has joined it yet."""
    try:
        return await describe(target, group_id)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        return None


async def wait_for_group(
    target: str, group_id: str, condition: Callable[[GroupView], bool], within_s: float
) -> GroupView:
    """Until the group is there and as wanted."""
    view = await until_answered(
        lambda: find(target, group_id),
        lambda view: view is not None and condition(view),
        f"{group_id} is as wanted within {within_s:g} s",
        patience=Patience(within_s),
        pause_s=POLL_S,
    )
    assert view is not None
    return view
