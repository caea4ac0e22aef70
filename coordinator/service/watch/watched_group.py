"""A group that is watched: it is described once for all who watch it, whenever it has changed."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from coordinator.runtime.api import GroupChanges
from model.errors import GroupError, UnknownServerError
from model.ids import GroupId, TopicName
from muster.v1 import admin_pb2

PAUSE_S: Final = 0.1
"""The least time between two looks at a group: what changes meanwhile is seen as one change."""
PAUSES: Final = 4
"""A look that takes long is followed by a pause of so many times its length."""
SLICE: Final = 50
"""So many watchers are told in one event-loop iteration; each then writes a message."""

_LOG = logging.getLogger(__name__)


class DescribedGroup(NamedTuple):
    """A group, and the topics that a caller must be allowed to describe to see it."""

    group: admin_pb2.Group
    topics: frozenset[TopicName]


Describe: TypeAlias = Callable[[GroupId], Awaitable[DescribedGroup]]
"""Describes a group as it is now, or raises a ``GroupError``."""


class Look(NamedTuple):
    """A group as it was at one moment, and the topics that one must be allowed to describe.

    ``message`` is the encoded ``WatchGroupResponse``.
    """

    number: int
    message: bytes
    group: admin_pb2.Group
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
                    took_s = await self._look()
                    await asyncio.sleep(max(PAUSE_S, PAUSES * took_s))
                    await changes.wait()
        except GroupError as error:
            self.end(error)
        except Exception as bug:  # noqa: BLE001 - its watchers are told
            _LOG.error("watching_failed", exc_info=bug)
            self.end(UnknownServerError(repr(bug)))

    async def _look(self) -> float:
        """Describe the group; returns how long that took, in seconds."""
        began_s = self._loop.time()
        found = await self._describe(self.changes.group_id)
        number = 1 if self.latest is None else self.latest.number + 1
        message = admin_pb2.WatchGroupResponse(
            group=found.group, heartbeat_interval_ms=self._heartbeat_ms
        )
        self.latest = Look(number, message.SerializeToString(), found.group, found.topics)
        self._looked_at_s = self._loop.time()
        self._tell()
        return self._looked_at_s - began_s

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
