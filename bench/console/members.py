"""The members of a group that is looked at: each sends a heartbeat when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import grpc.aio

from muster.v1 import admin_pb2, admin_pb2_grpc, group_pb2, group_pb2_grpc

AT_A_TIME = 16
KEEP_S = 10.0
SETTLE_S = 120.0


@dataclass(slots=True)
class Member:
    """One member."""

    stub: group_pb2_grpc.GroupServiceAsyncStub
    group_id: str
    member_id: str
    topic: str
    epoch: int = 0
    assignment: group_pb2.HeartbeatResponse = field(default_factory=group_pb2.HeartbeatResponse)

    async def beat(self) -> None:
        """A heartbeat that reports what the last one gave; the first one joins."""
        request = group_pb2.HeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            client_id=f"client of {self.member_id}",
        )
        if self.epoch == 0:
            request.subscription.subscribed_topic_names.append(self.topic)
            request.rebalance_timeout_ms = 60_000
            request.owned.SetInParent()
        elif self.assignment.HasField("assignment"):
            request.owned.CopyFrom(self.assignment.assignment)
        answer = await self.stub.Heartbeat(request)
        if answer.HasField("error"):
            raise RuntimeError(answer.error.error_message)
        self.epoch = answer.member_epoch
        if answer.HasField("assignment"):
            self.assignment = answer

    async def leave(self) -> None:
        self.epoch = -1
        await self.beat()
        self.epoch = 0
        self.assignment = group_pb2.HeartbeatResponse()


class Crowd:
    """The members of one group. Only one thing at a time is done with all of them."""

    def __init__(self, channel: grpc.aio.Channel, members: Sequence[Member]) -> None:
        self._admin = admin_pb2_grpc.AdminServiceStub(channel)
        self._turn = asyncio.Lock()
        self.members = members

    async def beat_all(self) -> None:
        """A heartbeat of each, some at a time."""
        gate = asyncio.Semaphore(AT_A_TIME)

        async def beat(member: Member) -> None:
            async with gate:
                await member.beat()

        async with self._turn:
            await asyncio.gather(*map(beat, self.members))

    async def settle(self) -> None:
        """Heartbeats until the group is stable."""
        request = admin_pb2.DescribeGroupRequest(group_id=self.members[0].group_id)
        async with asyncio.timeout(SETTLE_S):
            while True:
                await self.beat_all()
                found = await self._admin.DescribeGroup(request)
                if found.group.state == admin_pb2.GROUP_STATE_STABLE:
                    return

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """The members are kept alive meanwhile."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEP_S)
            await self.beat_all()
