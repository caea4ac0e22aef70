"""Groups for the console to show, made as gRPC's clients make them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message

from coordinator.runtime.runtime import Runtime
from coordinator.service.calls.local_calls import LocalCalls, Visitor
from model.caller import INTERNAL
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import OffsetColumns
from muster.v1 import group_pb2, types_pb2
from security.identity import NOBODY

CLIENT = Visitor(NOBODY, "ipv4:10.1.2.3:40000")


async def join(calls: LocalCalls, group_id: str, member_id: str = "m", **more: Any) -> None:
    """A member joins a group."""
    request = group_pb2.HeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscription=group_pb2.Subscription(subscribed_topic_names=["orders"]),
        **more,
    )
    answer = await calls.call("GroupService", "Heartbeat", request, CLIENT)
    assert not answer.HasField("error"), answer


async def leave(calls: LocalCalls, group_id: str, member_id: str = "m") -> None:
    """It leaves."""
    request = group_pb2.HeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=-1)
    await calls.call("GroupService", "Heartbeat", request, CLIENT)


async def commit(calls: LocalCalls, group_id: str, offset: int, partition: int = 0) -> None:
    """Somebody without a membership commits an offset of ``orders``."""
    offsets = [types_pb2.PartitionOffset(partition=partition, offset=offset)]
    topics = [types_pb2.TopicOffsets(topic_name="orders", partitions=offsets)]
    request = group_pb2.CommitOffsetsRequest(group_id=group_id, topics=topics)
    answer = await calls.call("GroupService", "CommitOffsets", request, CLIENT)
    assert not answer.failures, answer


async def commit_all(runtime: Runtime, group_ids: Iterable[str]) -> None:
    """An offset in each group, in the quickest way."""
    topics = (TopicOffsets(TopicName("orders"), None, OffsetColumns((0,), (1,), (-1,))),)
    await asyncio.gather(
        *(
            runtime.call(OffsetCommit(INTERNAL, GroupId(group_id), MemberId(""), None, topics))
            for group_id in group_ids
        )
    )


class CountedCalls(LocalCalls):
    """Counts what is asked, by method."""

    __slots__ = ("asked",)

    def __init__(self, calls: LocalCalls) -> None:
        super().__init__(calls.services, calls.throttle, calls.in_flight)
        object.__setattr__(self, "asked", [])

    asked: list[str]

    async def call(self, service: str, method: str, request: Message, visitor: Visitor) -> Any:
        self.asked.append(method)
        return await super().call(service, method, request, visitor)
