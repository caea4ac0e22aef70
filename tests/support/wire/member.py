"""A KIP-848 member on Kafka's wire: its state, and one that behaves like a real client.

One process can hold many.
"""

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


class WireState:
    """The state of a member, and the fields of its heartbeats. It has no connection."""

    def __init__(self, group_id: str, topics: tuple[str, ...], member_id: str) -> None:
        self.group_id = group_id
        self.topics = topics
        self.member_id = member_id
        self.member_epoch = 0
        self.owned: Partitions = {}

    def compose_full(self, **said: Any) -> dict[str, Any]:
        """A full heartbeat: a join at epoch 0."""
        state = {"member_epoch": self.member_epoch, "topic_partitions": self.owned_rows()}
        return fields.join(self.group_id, self.member_id, self.topics, **state, **said)

    def compose_partial(self, **said: Any) -> dict[str, Any]:
        """A heartbeat of nothing but what is ``said``."""
        return fields.beat(self.group_id, self.member_id, self.member_epoch, **said)

    def compose_leave(self) -> dict[str, Any]:
        return fields.beat(self.group_id, self.member_id, -1)

    def owned_rows(self) -> list[dict[str, Any]]:
        """The owned partitions, as a request has them."""
        return [{"topic_id": key, "partitions": value} for key, value in self.owned.items()]

    def hear(self, response: Any) -> Partitions | None:
        """Take over the epoch; returns the assignment, if the response has one."""
        assert not response.error_code, response
        self.member_epoch = response.member_epoch
        return assignment_of(response)

    def forget(self) -> None:
        """Forget the membership: the member is fenced or gone."""
        self.member_epoch, self.owned = 0, {}


class WireMember(WireState):
    """A KIP-848 member on its own connection, which behaves like a real client.

    It heartbeats at the interval that the server sets, counted from the send, revokes at once what
    it must, and after a server outage reconnects with its epoch.
    """

    def __init__(self, address: tuple[str, int], group_id: str, topic: str) -> None:
        super().__init__(group_id, (topic,), str(uuid.uuid4()))
        self._address = address
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
            says_all = full or self.member_epoch == 0
            said = (
                self.compose_full(rebalance_timeout=30_000) if says_all else self.compose_partial()
            )
            response = await client.ask(HEARTBEAT, 1, **said)
            error = response.error_code
            if error in _TRY_AGAIN:
                await asyncio.sleep(0.05)
                continue
            if error:
                self.errors.append(error)
                self.forget()
                full = True
                await asyncio.sleep(0.05)
                continue
            self.heartbeats += 1
            assignment = self.hear(response)
            full = False
            while assignment is not None and assignment != self.owned:
                self.owned = assignment
                assignment = await self._acknowledge(client)
            interval_s = response.heartbeat_interval / 1_000
            await asyncio.sleep(max(0.0, sent_at + interval_s - loop.time()))

    async def _acknowledge(self, client: Connection) -> Partitions | None:
        """Send the owned partitions; returns the next assignment, if the response has one."""
        request = self.compose_partial(topic_partitions=self.owned_rows())
        response = await client.ask(HEARTBEAT, 1, **request)
        if response.error_code:
            self.errors.append(response.error_code)
            return None
        return self.hear(response)


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
