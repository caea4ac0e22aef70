"""A group that is watched: it is described once for all who watch it, whenever it has changed."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from coordinator.runtime.api import GroupChanges
from coordinator.runtime.loop.slices import Steps
from coordinator.service.wire.answer_slices import run_steps
from model.errors import GroupError, UnknownServerError
from model.ids import TopicName
from muster.v1 import admin_pb2

PAUSE_S: Final = 0.1
"""The least time between two looks at a group: what changes meanwhile is seen as one change."""
BYTES_PER_S: Final = 2_000_000
"""The looks at a group have at most so many bytes a second, after each of which is a pause.

A byte costs some 0.1 µs. How long a look took would be no measure: a busy loop would make pauses
long after it is busy no more.
"""
SLICE_BYTES: Final = 100_000
"""So much of a look is encoded in one event-loop iteration, and a member more."""
SLICE: Final = 50
"""So many watchers are told in one event-loop iteration; each then writes a message."""

_LOG = logging.getLogger(__name__)


class DescribedGroup(NamedTuple):
    """A group, and the topics that a caller must be allowed to describe to see it."""

    group: admin_pb2.Group
    topics: frozenset[TopicName]


Describe: TypeAlias = Callable[[], Awaitable[DescribedGroup]]
"""Describes one group as it is now, or raises a ``GroupError``."""


class Look(NamedTuple):
    """A group as it was at one moment, and the topics that one must be allowed to describe.

    ``message`` is the encoded ``WatchGroupResponse``.
    """

    number: int
    message: bytes
    topics: frozenset[TopicName]


class WatchedGroup:
    """One group, as long as anybody watches it."""

    def __init__(self, changes: GroupChanges, describe: Describe, heartbeat_ms: int) -> None:
        self._describe = describe
        self._heartbeat_ms = heartbeat_ms
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._to_tell: deque[asyncio.Future[None]] = deque()
        self._looked_at_s = 0.0
        self.changes = changes
        self.watchers = 0
        self.latest: Look | None = None
        self.error: GroupError | None = None
        self._task = asyncio.create_task(self._follow())

    def find_fresh(self) -> Look | None:
        """The last look, unless its times have aged: then the next one is asked for."""
        if self.latest is None or self._loop.time() - self._looked_at_s <= PAUSE_S:
            return self.latest
        self.changes.tell()
        return None

    async def wait(self) -> None:
        """Wait for another look, or an error."""
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting[waiting] = None
        try:
            await waiting
        finally:
            self._waiting.pop(waiting, None)

    def end(self, error: GroupError) -> None:
        """No more looks; the first error is the one that watchers see."""
        self.error = self.error or error
        self._tell()

    def close(self) -> None:
        """Nobody watches it any more."""
        self._task.cancel()

    async def _follow(self) -> None:
        try:
            with self.changes as changes:
                while True:
                    look = await self._look()
                    await asyncio.sleep(max(PAUSE_S, len(look.message) / BYTES_PER_S))
                    await changes.wait()
        except GroupError as error:
            self.end(error)
        except Exception as bug:  # noqa: BLE001 - its watchers are told
            _LOG.error("watching_failed", exc_info=bug)
            self.end(UnknownServerError(repr(bug)))

    async def _look(self) -> Look:
        """Describe the group, and tell its watchers."""
        found = await self._describe()
        message = await run_steps(_encode(found.group, self._heartbeat_ms))
        number = 1 if self.latest is None else self.latest.number + 1
        self.latest = Look(number, message, found.topics)
        self._looked_at_s = self._loop.time()
        self._tell()
        return self.latest

    def _tell(self) -> None:
        is_telling = bool(self._to_tell)
        self._to_tell.extend(self._waiting)
        self._waiting.clear()
        if not is_telling:
            self._tell_slice()

    def _tell_slice(self) -> None:
        for _ in range(min(SLICE, len(self._to_tell))):
            waiting = self._to_tell.popleft()
            if not waiting.done():
                waiting.set_result(None)
        if self._to_tell:
            self._loop.call_soon(self._tell_slice)


def _encode(group: admin_pb2.Group, heartbeat_ms: int) -> Steps[bytes]:
    """A ``WatchGroupResponse``, some members at a time: what is encoded one after the other is
    read as one message."""
    head = {field.name: value for field, value in group.ListFields() if field.name != "members"}
    message = admin_pb2.WatchGroupResponse(
        group=admin_pb2.Group(**head), heartbeat_interval_ms=heartbeat_ms
    )
    parts = [message.SerializeToString()]
    taken: list[admin_pb2.GroupMember] = []
    size = 0
    for member in group.members:
        taken.append(member)
        size += member.ByteSize()
        if size >= SLICE_BYTES:
            parts.append(_encode_members(taken))
            taken, size = [], 0
            yield
    parts.append(_encode_members(taken))
    return b"".join(parts)


def _encode_members(members: Sequence[admin_pb2.GroupMember]) -> bytes:
    group = admin_pb2.Group(members=members)
    return admin_pb2.WatchGroupResponse(group=group).SerializeToString()
