"""Commits offset after offset in a group of its own, as fast as possible.

After the server was killed, the group's offset must be the last one that was acknowledged, or the
one in flight at that moment: no other client commits there, so a lost commit cannot be hidden.
"""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio

from cli.secure_channel import CHANNEL_OPTIONS
from muster.v1 import group_pb2, group_pb2_grpc, types_pb2

_CALL_TIMEOUT_S = 5.0
_PAUSE_S = 0.005


class Audit:
    """The committing client. ``acknowledged`` and ``attempted`` are its last offsets."""

    def __init__(self, target: str, group_id: str, topic: str) -> None:
        self._group_id = group_id
        self._topic = topic
        self._channel = grpc.aio.insecure_channel(
            target,
            options=(
                *CHANNEL_OPTIONS,
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 500),
            ),
        )
        self._stub = group_pb2_grpc.GroupServiceStub(self._channel)
        self._task: asyncio.Task[None] | None = None
        self.acknowledged = 0
        self.attempted = 0
        self.failure = ""

    def start(self) -> None:
        """Commit until ``pause`` is called or the server is gone."""
        self._task = asyncio.create_task(self._run(), name="demo-audit")

    async def pause(self) -> None:
        """Stop committing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def close(self) -> None:
        """Stop and close the connection."""
        await self.pause()
        await self._channel.close(None)

    async def fetch(self, group_id: str | None = None) -> dict[int, int]:
        """Fetch a group's committed offsets (by default its own); waits for the server."""
        request = group_pb2.FetchOffsetsRequest(group_id=group_id or self._group_id)
        response = await self._stub.FetchOffsets(
            request, timeout=_CALL_TIMEOUT_S, wait_for_ready=True
        )
        return {
            entry.partition: entry.offset
            for topic in response.topics
            if topic.topic_name == self._topic
            for entry in topic.partitions
            if entry.HasField("offset")
        }

    async def _run(self) -> None:
        while True:
            self.attempted += 1
            offsets = types_pb2.PartitionOffset(partition=0, offset=self.attempted)
            request = group_pb2.CommitOffsetsRequest(
                group_id=self._group_id,
                topics=[types_pb2.TopicOffsets(topic_name=self._topic, partitions=[offsets])],
                client_id="audit",
            )
            try:
                response = await self._stub.CommitOffsets(request, timeout=_CALL_TIMEOUT_S)
            except grpc.RpcError:
                # The server is gone. Only ``fetch`` can tell whether this commit arrived.
                return
            if response.HasField("error") or response.failures:
                self.failure = str(response).replace("\n", " ")
                return
            self.acknowledged = self.attempted
            await asyncio.sleep(_PAUSE_S)
