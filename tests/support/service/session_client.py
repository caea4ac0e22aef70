"""A scripted client of GroupService.Session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc.aio

from muster.v1 import group_pb2, group_pb2_grpc, types_pb2

GROUP = "billing"


class SessionClient:
    """One session stream. Answers pings only if ``answers_pings``."""

    def __init__(
        self,
        stub: group_pb2_grpc.GroupServiceAsyncStub,
        *,
        answers_pings: bool = True,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.call = stub.Session(None, metadata=metadata)
        self.renewed_sequence = 0
        self.sequence = 0
        self.pings = 0
        self.answers_pings = answers_pings
        self._updates: list[group_pb2.MemberUpdate] = []

    async def send(self, *actions: group_pb2.MemberAction) -> None:
        self.sequence += 1
        await self.call.write(group_pb2.SessionRequest(sequence=self.sequence, actions=actions))

    async def read(self) -> group_pb2.SessionResponse | None:
        """The next message; ``None`` at the end of the stream."""
        async with asyncio.timeout(30):
            response = await self.call.read()
        if not isinstance(response, group_pb2.SessionResponse):
            return None
        self.renewed_sequence = max(self.renewed_sequence, response.renewed_sequence)
        if response.HasField("ping"):
            self.pings += 1
            if self.answers_pings:
                self.sequence += 1
                pong = group_pb2.Pong(ping_id=response.ping.ping_id)
                await self.call.write(group_pb2.SessionRequest(sequence=self.sequence, pong=pong))
        return response

    async def next_update(self) -> group_pb2.MemberUpdate:
        while not self._updates:
            response = await self.read()
            assert response is not None, "the stream ended"
            self._updates.extend(response.updates)
        return self._updates.pop(0)

    async def expect(self, kind: str, member_id: str | None = None) -> Any:
        """The content of the next update, which must be of this kind."""
        update = await self.next_update()
        assert update.WhichOneof("update") == kind, update
        if member_id is not None:
            assert update.member_id == member_id, update
        return getattr(update, kind)

    async def join(self, member_id: str, **fields: Any) -> group_pb2.Assignment:
        """Join and return the answer, without acknowledging an assignment."""
        await self.send(join(member_id, **fields))
        assignment = await self.expect("assignment", member_id)
        assert isinstance(assignment, group_pb2.Assignment)
        return assignment

    async def settle(self, member_id: str, assignment: group_pb2.Assignment) -> None:
        """Acknowledge an assignment."""
        await self.send(acknowledge(member_id, assignment, assignment.assignment.topics))

    async def settle_and_hear(self, member_id: str, assignment: group_pb2.Assignment) -> None:
        """``settle``, and wait until it is handled: until a commit sent after it is answered."""
        topics = assignment.assignment.topics
        done = acknowledge(member_id, assignment, topics)
        await self.send(done, commit(member_id, assignment.member_epoch, {0: 0}))
        await self.expect("commit_result")

    async def end(self, *, closes: bool = True) -> None:
        """Half-closes, if it ``closes``, and reads to the end."""
        if closes:
            await self.call.done_writing()
        while await self.read() is not None:
            pass


def join(
    member_id: str,
    *,
    member_epoch: int = 0,
    join_id: int = 1,
    topics: Iterable[str] = ("orders",),
    owned: Iterable[types_pb2.TopicPartitions] = (),
    group_id: str = GROUP,
    rebalance_timeout_ms: int = 60_000,
    **fields: Any,
) -> group_pb2.MemberAction:
    return group_pb2.MemberAction(
        group_id=group_id,
        member_id=member_id,
        join=group_pb2.Join(
            join_id=join_id,
            member_epoch=member_epoch,
            rebalance_timeout_ms=rebalance_timeout_ms,
            subscription=group_pb2.Subscription(subscribed_topic_names=topics),
            owned=owned,
            **fields,
        ),
    )


def acknowledge(
    member_id: str,
    assignment: group_pb2.Assignment,
    owned: Iterable[types_pb2.TopicPartitions] | None,
    group_id: str = GROUP,
) -> group_pb2.MemberAction:
    said = None if owned is None else types_pb2.PartitionSet(topics=owned)
    return group_pb2.MemberAction(
        group_id=group_id,
        member_id=member_id,
        acknowledge=group_pb2.Acknowledge(
            assignment_id=assignment.assignment_id,
            member_epoch=assignment.member_epoch,
            owned=said,
        ),
    )


def commit(
    member_id: str,
    member_epoch: int,
    offsets: dict[int, int],
    *,
    correlation_id: int = 1,
    topic: str = "orders",
    group_id: str = GROUP,
) -> group_pb2.MemberAction:
    topics = [
        types_pb2.TopicOffsets(
            topic_name=topic,
            partitions=[
                types_pb2.PartitionOffset(partition=partition, offset=offset)
                for partition, offset in offsets.items()
            ],
        )
    ]
    return group_pb2.MemberAction(
        group_id=group_id,
        member_id=member_id,
        commit=group_pb2.Commit(
            correlation_id=correlation_id, member_epoch=member_epoch, topics=topics
        ),
    )


def leave(
    member_id: str, group_id: str = GROUP, member_epoch: int = -1, instance_id: str = ""
) -> group_pb2.MemberAction:
    return group_pb2.MemberAction(
        group_id=group_id,
        member_id=member_id,
        leave=group_pb2.Leave(member_epoch=member_epoch, instance_id=instance_id),
    )


def partitions_of(assignment: group_pb2.Assignment) -> set[int]:
    """The partitions of ``orders`` in an assignment."""
    return {index for topic in assignment.assignment.topics for index in topic.partitions}


def only(assignment: group_pb2.Assignment, partitions: set[int]) -> list[types_pb2.TopicPartitions]:
    """The same topic with these partitions alone."""
    (topic,) = assignment.assignment.topics
    return [types_pb2.TopicPartitions(topic_id=topic.topic_id, partitions=sorted(partitions))]


async def end_status(call: grpc.aio.Call) -> tuple[grpc.StatusCode, str]:
    """The status with which a call ended."""
    async with asyncio.timeout(30):
        return await call.code(), await call.details() or ""
