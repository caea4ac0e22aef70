"""A KIP-848 member that behaves like a real client; one process can hold many."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from model.errors import ErrorCode
from tests.support.wire import fields
from tests.support.wire.connection import Connection

COMMIT, FETCH, HEARTBEAT = 8, 9, 68

Partitions = dict[bytes, tuple[int, ...]]


_TRY_AGAIN = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Errors while the server starts and stops; the member loses nothing by them."""


def assignment_of(response: Any) -> Partitions | None:
    """The assignment in a heartbeat response, if there is one."""
    if response.assignment is None:
        return None
    rows = response.assignment.topic_partitions
    return {topic.topic_id: tuple(topic.partitions) for topic in rows}


class WireMember:
    """A KIP-848 member on its own connection, which behaves like a real client.

    It heartbeats at the interval that the server sets, counted from the send, revokes at once what
    it must, and after a server outage reconnects with its epoch.
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
        """Run until cancelled."""
        while True:
            try:
                async with await connect(self._address) as client:
                    await self._heartbeats(client)
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.05)

    async def _heartbeats(self, client: Connection) -> None:
        loop = asyncio.get_running_loop()
        # After a reconnect send all fields again: the last response may have been lost.
        full = True
        while True:
            sent_at = loop.time()
            response = await client.ask(HEARTBEAT, 1, **self._compute_fields(full))
            error = response.error_code
            if error in _TRY_AGAIN:
                await asyncio.sleep(0.05)
                continue
            if error:
                self.errors.append(error)
                self.member_epoch, self.owned, full = 0, {}, True
                await asyncio.sleep(0.05)
                continue
            self.heartbeats += 1
            self.member_epoch = response.member_epoch
            assignment = assignment_of(response)
            full = False
            while assignment is not None and assignment != self.owned:
                self.owned = assignment
                assignment = await self._acknowledge(client)
            interval_s = response.heartbeat_interval / 1_000
            await asyncio.sleep(max(0.0, sent_at + interval_s - loop.time()))

    async def _acknowledge(self, client: Connection) -> Partitions | None:
        """Send the owned partitions; returns the next assignment, if the response has one."""
        request = fields.beat(
            self.group_id, self.member_id, self.member_epoch, topic_partitions=self._owned_rows()
        )
        response = await client.ask(HEARTBEAT, 1, **request)
        if response.error_code:
            self.errors.append(response.error_code)
            return None
        self.member_epoch = response.member_epoch
        return assignment_of(response)

    def _compute_fields(self, full: bool) -> dict[str, Any]:
        if full or self.member_epoch == 0:
            said = {
                "member_epoch": self.member_epoch,
                "rebalance_timeout": 30_000,
                "topic_partitions": self._owned_rows(),
            }
            return fields.join(self.group_id, self.member_id, (self.topic,)) | said
        return fields.beat(self.group_id, self.member_id, self.member_epoch)

    def _owned_rows(self) -> list[dict[str, Any]]:
        return [{"topic_id": key, "partitions": value} for key, value in self.owned.items()]


async def connect(address: tuple[str, int]) -> Connection:
    """A connection whose reads wait without limit."""
    return await Connection.open("{}:{}".format(*address), patience_s=None)


async def commit(
    client: Connection, group_id: str, topic: str, offsets: dict[int, int]
) -> dict[int, int]:
    """Commit without a member; the error code of each partition."""
    response = await client.ask(COMMIT, 9, **fields.commit(group_id, topic, offsets))
    return {
        partition.partition_index: partition.error_code
        for found in response.topics
        for partition in found.partitions
    }


async def fetch_all(client: Connection, group_id: str) -> dict[tuple[str, int], int]:
    """All committed offsets of a group."""
    wanted = {"group_id": group_id, "topics": None}
    response = await client.ask(FETCH, 9, groups=[wanted], require_stable=True)
    (group,) = response.groups
    assert not group.error_code, group
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
    }
