"""The states of a group, one after the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from coordinator.service.calls.local_calls import LocalCalls, Visitor
from muster.v1 import admin_pb2


async def watch_group(
    calls: LocalCalls, visitor: Visitor, group_id: str
) -> AsyncGenerator[admin_pb2.Group, None]:
    """The group as it is, and again whenever it has changed. Raises ``CallRefused``."""
    request = admin_pb2.WatchGroupRequest(group_id=group_id)
    stream = await calls.call("AdminService", "WatchGroup", request, visitor)
    try:
        async for message in stream:
            if message.HasField("group"):
                yield message.group
    finally:
        await stream.aclose()
