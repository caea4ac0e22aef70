"""Asks the demo's server to move a group, and the cluster how it sees the group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from cli.secure_channel import CHANNEL_OPTIONS
from cli.upstream.upstream_listings import compute_failures, render_place
from muster.v1 import upstream_pb2, upstream_pb2_grpc

_MOVE_TIMEOUT_S: Final = 60.0
_ASK_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Move:
    """What came of a move: the place, as the documentation writes it, and why it failed, if so."""

    place: str
    error: str = ""


async def take(target: str, group_id: str) -> Move:
    """Take the group over."""
    request = upstream_pb2.TakeGroupsRequest(group_ids=[group_id])
    return await _follow(target, lambda stub: stub.TakeGroups(request, timeout=_MOVE_TIMEOUT_S))


async def release(target: str, group_id: str) -> Move:
    """Give the group back."""
    request = upstream_pb2.ReleaseGroupsRequest(group_ids=[group_id])
    return await _follow(target, lambda stub: stub.ReleaseGroups(request, timeout=_MOVE_TIMEOUT_S))


async def _follow(target: str, ask: Any) -> Move:
    async with grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel:
        reports: AsyncIterator[upstream_pb2.GroupReport]
        reports = ask(upstream_pb2_grpc.UpstreamServiceStub(channel))
        try:
            found = [report async for report in reports]
        except grpc.aio.AioRpcError as error:
            return Move("unknown", f"{error.code().name}: {error.details()}")
    (report,) = found
    failures = compute_failures(found)
    return Move(render_place(report.group.place), failures[0].message if failures else "")


async def find_place(target: str, group_id: str) -> str:
    """Where the server says the group is; ``unknown`` if it does not say."""
    request = upstream_pb2.ListUpstreamGroupsRequest()
    async with grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel:
        stub = upstream_pb2_grpc.UpstreamServiceStub(channel)
        try:
            response = await stub.ListUpstreamGroups(request, timeout=_ASK_TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return "unknown"
    places = {group.group_id: render_place(group.place) for group in response.groups}
    return places.get(group_id, "unknown")


async def list_members_there(bootstrap: str, group_id: str) -> Collection[str]:
    """The client ids of the group's members, as the cluster itself says; none if it does not."""

    def ask() -> Collection[str]:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        found = admin.describe_consumer_groups([group_id], request_timeout=_ASK_TIMEOUT_S)
        return [member.client_id for member in found[group_id].result(_ASK_TIMEOUT_S).members]

    try:
        return await asyncio.to_thread(ask)
    except (KafkaException, TimeoutError):
        return []


async def fetch_committed_there(
    bootstrap: str, group_id: str, topic: str, partitions: int
) -> dict[int, int]:
    """The group's committed offsets, as the cluster itself says."""

    def ask() -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "log_level": 0})
        try:
            wanted = [TopicPartition(topic, number) for number in range(partitions)]
            found = consumer.committed(wanted, timeout=_ASK_TIMEOUT_S)
        finally:
            consumer.close()
        return {row.partition: row.offset for row in found if row.offset >= 0}

    try:
        return await asyncio.to_thread(ask)
    except KafkaException:
        return {}
