"""No session or call leaves a reference cycle in Muster: reference counting frees its objects.

gRPC itself leaves a cycle of about ten objects per call, which the garbage collector must find.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio
import pytest

from muster.v1 import admin_pb2, classic_pb2, group_pb2, types_pb2
from tests.garbage import count_left, run_as_served
from tests.support.service.session_client import SessionClient, commit, leave
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until

MANY = 200
MUSTER = ("cli", "coordinator", "gateway", "model", "muster", "storage", "translator")


async def sessions_that_come_and_go(stand: Stand, times: int) -> None:
    stub = stand.group_stub()
    for number in range(times):
        session = SessionClient(stub)
        member = f"m{number}"
        assignment = await session.join(member)
        await session.settle(member, assignment)
        await session.send(
            commit(member, assignment.member_epoch, {0: number}),
        )
        await session.expect("commit_result", member)
        await session.send(leave(member))
        await session.end()


async def sessions_that_break(stand: Stand, times: int) -> None:
    stub = stand.group_stub()
    for number in range(times):
        session = SessionClient(stub)
        await session.join(f"m{number % 8}")
        session.call.cancel()
    await until(lambda: not stand.server._services.sessions._sessions)
    await asyncio.sleep(0.2)


async def commits(stand: Stand, times: int) -> None:
    stub = stand.group_stub()
    offset = types_pb2.PartitionOffset(partition=0, offset=1)
    topic = types_pb2.TopicOffsets(topic_name="orders", partitions=[offset])
    for _ in range(times):
        await stub.CommitOffsets(group_pb2.CommitOffsetsRequest(group_id="g", topics=[topic]))


async def heartbeats(stand: Stand, times: int) -> None:
    stub = stand.group_stub()
    said = group_pb2.Subscription(subscribed_topic_names=["orders"])
    for number in range(times):
        member = f"m{number}"
        answer = await stub.Heartbeat(
            group_pb2.HeartbeatRequest(
                group_id="g",
                member_id=member,
                rebalance_timeout_ms=60_000,
                subscription=said,
            )
        )
        await stub.Heartbeat(
            group_pb2.HeartbeatRequest(group_id="g", member_id=member, member_epoch=-1)
        )
        assert answer.member_epoch > 0


async def calls_that_are_refused(stand: Stand, times: int) -> None:
    """Make calls that the coordinator rejects, at once or later, and that the service rejects."""
    admin, classic = stand.admin_stub(), stand.classic_stub()
    join = classic_pb2.JoinGroupRequest(
        group_id="classic",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[classic_pb2.GroupProtocol(name="range")],
    )
    for number in range(times):
        name = f"nobody-{number}"
        await expect_refusal(admin.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id=name)))
        await expect_refusal(admin.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id=name)))
        await expect_refusal(admin.DescribeGroup(admin_pb2.DescribeGroupRequest()))
        assert (await classic.JoinGroup(join)).member_id


async def expect_refusal(call: Awaitable[Any]) -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await call


@pytest.mark.parametrize(
    "kind",
    [heartbeats, sessions_that_come_and_go, sessions_that_break, commits, calls_that_are_refused],
    ids=lambda kind: kind.__name__,
)
def test_sessions_leave_nothing(kind: Callable[[Stand, int], Awaitable[None]]) -> None:
    async def main() -> None:
        async with running_stand() as stand, asyncio.timeout(120):
            left = await count_left(lambda times: kind(stand, times), MANY, of=MUSTER)
            assert not left, left

    run_as_served(main())
