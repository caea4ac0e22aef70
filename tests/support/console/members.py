"""Members of consumer groups for the console's tests, which take every step by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from muster.v1 import group_pb2, group_pb2_grpc
from tests.support.service.stand import Stand


@dataclass
class Member:
    """A member that sends a heartbeat when it is told to."""

    stub: group_pb2_grpc.GroupServiceAsyncStub
    group_id: str
    member_id: str
    topics: tuple[str, ...] = ("orders",)
    client_id: str = "client"
    epoch: int = 0

    async def beat(self, **fields: object) -> group_pb2.HeartbeatResponse:
        """A heartbeat; the first one joins."""
        request = group_pb2.HeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            client_id=self.client_id,
            **fields,  # type: ignore[arg-type]
        )
        if self.epoch == 0:
            request.subscription.subscribed_topic_names.extend(self.topics)
            request.rebalance_timeout_ms = 60_000
            request.owned.SetInParent()
        answer = await self.stub.Heartbeat(request)
        assert not answer.HasField("error"), answer.error
        self.epoch = answer.member_epoch
        return answer

    async def leave(self) -> None:
        self.epoch = -1
        await self.beat()


async def join(stand: Stand, group_id: str, member_id: str, **fields: object) -> Member:
    """A member that has joined."""
    member = Member(stand.group_stub(), group_id, member_id, **fields)  # type: ignore[arg-type]
    await member.beat()
    return member
