"""A member of KIP-848 as a real client behaves, many of which one process can hold."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import Iterable
from typing import Any, cast

from kio.schema.consumer_group_heartbeat.v1 import request as heartbeat_request
from kio.schema.consumer_group_heartbeat.v1 import response as heartbeat_response
from kio.schema.offset_commit.v9 import request as commit_request
from kio.schema.offset_commit.v9 import response as commit_response
from kio.schema.offset_fetch.v9 import request as fetch_request
from kio.schema.offset_fetch.v9 import response as fetch_response

from model.errors import ErrorCode
from tests.support.wire.referee import RefereedConnection

Partitions = dict[bytes, tuple[int, ...]]


_TRY_AGAIN = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""While the server starts and stops; nothing is lost by it."""


def heartbeat(
    group_id: str,
    member_id: str,
    member_epoch: int,
    *,
    topics: Iterable[str] | None = None,
    owned: Partitions | None = None,
    rebalance_timeout_ms: int = -1,
) -> heartbeat_request.ConsumerGroupHeartbeatRequest:
    """A heartbeat; with ``topics`` and a timeout a full one, as a join must be."""
    return heartbeat_request.ConsumerGroupHeartbeatRequest(
        group_id=cast(Any, group_id),
        member_id=member_id,
        member_epoch=cast(Any, member_epoch),
        rebalance_timeout=cast(Any, datetime.timedelta(milliseconds=rebalance_timeout_ms)),
        subscribed_topic_names=None if topics is None else cast(Any, tuple(topics)),
        topic_partitions=None
        if owned is None
        else tuple(
            heartbeat_request.TopicPartitions(
                topic_id=uuid.UUID(bytes=topic_id), partitions=cast(Any, partitions)
            )
            for topic_id, partitions in owned.items()
        ),
    )


HeartbeatResponse = heartbeat_response.ConsumerGroupHeartbeatResponse


def assignment_of(response: heartbeat_response.ConsumerGroupHeartbeatResponse) -> Partitions | None:
    """The assignment in an answer, if there is one."""
    if response.assignment is None:
        return None
    return {
        topic.topic_id.bytes if topic.topic_id is not None else bytes(16): tuple(topic.partitions)
        for topic in response.assignment.topic_partitions
    }


class WireMember:
    """A member of KIP-848 on a connection of its own, as a real client behaves.

    Heartbeats at the interval that it was told, counted from the send; gives up at once what it
    is told to; reconnects when the server was away, with its epoch.
    """

    def __init__(self, address: tuple[str, int], group_id: str, topic: str) -> None:
        self._address = address
        self.group_id = group_id
        self.topic = topic
        self.member_id = str(uuid.uuid4())
        self.member_epoch = 0
        self.owned: Partitions = {}
        self.heartbeats = 0
        self.errors: list[int] = []

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            client = RefereedConnection(*self._address)
            try:
                await client.connect()
                await self._heartbeats(client)
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.05)
            finally:
                await client.close()

    async def _heartbeats(self, client: RefereedConnection) -> None:
        loop = asyncio.get_running_loop()
        # After a reconnect all is said again: the last answer may have been lost.
        full = True
        while True:
            sent_at = loop.time()
            response = await client.send(self._request(full), HeartbeatResponse)
            error = int(response.error_code)
            if error in _TRY_AGAIN:
                await asyncio.sleep(0.05)
                continue
            if error:
                self.errors.append(error)
                self.member_epoch, self.owned, full = 0, {}, True
                await asyncio.sleep(0.05)
                continue
            self.heartbeats += 1
            self.member_epoch = int(response.member_epoch)
            assignment = assignment_of(response)
            full = False
            while assignment is not None and assignment != self.owned:
                self.owned = assignment
                assignment = await self._acknowledge(client)
            interval_s = response.heartbeat_interval.total_seconds()
            await asyncio.sleep(max(0.0, sent_at + interval_s - loop.time()))

    async def _acknowledge(self, client: RefereedConnection) -> Partitions | None:
        """Say what is owned now; the next assignment, if the answer has one."""
        request = heartbeat(self.group_id, self.member_id, self.member_epoch, owned=self.owned)
        response = await client.send(request, HeartbeatResponse)
        if int(response.error_code):
            self.errors.append(int(response.error_code))
            return None
        self.member_epoch = int(response.member_epoch)
        return assignment_of(response)

    def _request(self, full: bool) -> heartbeat_request.ConsumerGroupHeartbeatRequest:
        if full or self.member_epoch == 0:
            return heartbeat(
                self.group_id,
                self.member_id,
                self.member_epoch,
                topics=(self.topic,),
                owned=self.owned,
                rebalance_timeout_ms=30_000,
            )
        return heartbeat(self.group_id, self.member_id, self.member_epoch)


async def commit(
    client: RefereedConnection, group_id: str, topic: str, offsets: dict[int, int]
) -> dict[int, int]:
    """Commit without a member; the error code of each partition."""
    request = commit_request.OffsetCommitRequest(
        group_id=cast(Any, group_id),
        member_id="",
        topics=(
            commit_request.OffsetCommitRequestTopic(
                name=cast(Any, topic),
                partitions=tuple(
                    commit_request.OffsetCommitRequestPartition(
                        partition_index=cast(Any, partition),
                        committed_offset=cast(Any, offset),
                        committed_metadata="",
                    )
                    for partition, offset in offsets.items()
                ),
            ),
        ),
    )
    response = await client.send(request, commit_response.OffsetCommitResponse)
    return {
        int(partition.partition_index): int(partition.error_code)
        for found in response.topics
        for partition in found.partitions
    }


async def fetch_all(client: RefereedConnection, group_id: str) -> dict[tuple[str, int], int]:
    """All committed offsets of a group."""
    request = fetch_request.OffsetFetchRequest(
        groups=(fetch_request.OffsetFetchRequestGroup(group_id=cast(Any, group_id), topics=None),),
        require_stable=True,
    )
    response = await client.send(request, fetch_response.OffsetFetchResponse)
    (group,) = response.groups
    assert not int(group.error_code), group
    return {
        (topic.name, int(partition.partition_index)): int(partition.committed_offset)
        for topic in group.topics
        for partition in topic.partitions
    }
