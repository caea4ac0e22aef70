"""Groups that are watched, each by any number of watchers, at their own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from coordinator.runtime.api import Coordinator
from coordinator.service.watch.watched_group import Describe, Look, WatchedGroup
from model.errors import CoordinatorNotAvailable, GroupError
from model.ids import GroupId


class TooManyWatches(Exception):
    """As many watches are open as may be."""


class GroupWatch:
    """The looks at a group that one watcher gets, from ``__enter__`` to ``__exit__``.

    It gets the newest look that it has not had: who is slow misses those between.
    """

    def __init__(self, groups: WatchedGroups, group_id: GroupId) -> None:
        self._groups = groups
        self._group_id = group_id
        self._watched: WatchedGroup | None = None
        self._seen = 0
        self._last = b""

    def __enter__(self) -> GroupWatch:
        """Raises ``TooManyWatches``."""
        self._watched = self._groups.enter(self._group_id)
        fresh = self._watched.find_fresh()
        if fresh is None and self._watched.latest is not None:
            self._seen = self._watched.latest.number
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._watched is not None:
            self._groups.leave(self._watched)

    async def next(self, timeout_s: float) -> Look | None:
        """The newest look that shows something new; ``None`` if nothing has changed for so long.

        Raises the ``GroupError`` that a description of the group would: it is gone.
        """
        watched = self._watched
        assert watched is not None, "enter it first"
        try:
            async with asyncio.timeout(timeout_s):
                while (look := self._find_new(watched)) is None:
                    await watched.wait()
        except TimeoutError:
            return None
        return look

    def _find_new(self, watched: WatchedGroup) -> Look | None:
        if watched.error is not None:
            raise watched.error.with_traceback(None)
        look = watched.latest
        if look is None or look.number == self._seen:
            return None
        self._seen = look.number
        if look.message == self._last:
            return None
        self._last = look.message
        return look


class WatchedGroups:
    """All groups that are watched, and by how many."""

    def __init__(
        self,
        coordinator: Coordinator,
        make_describe: Callable[[GroupId], Describe],
        most: int,
        heartbeat_ms: int,
    ) -> None:
        self._coordinator = coordinator
        self._make_describe = make_describe
        self._most = most
        self._heartbeat_ms = heartbeat_ms
        self._groups: dict[GroupId, WatchedGroup] = {}
        self._watchers = 0
        self._is_stopping = False

    def __len__(self) -> int:
        return self._watchers

    def watch(self, group_id: GroupId) -> GroupWatch:
        """Watch a group; its errors come with the first look."""
        return GroupWatch(self, group_id)

    def enter(self, group_id: GroupId) -> WatchedGroup:
        """One more watches the group. Raises ``TooManyWatches``."""
        if self._watchers >= self._most:
            raise TooManyWatches(f"grpc.watches.max: {self._most} watches of groups are open")
        watched = self._groups.get(group_id)
        if watched is None or watched.error is not None:
            changes = self._coordinator.changes_of(group_id)
            watched = WatchedGroup(changes, self._make_describe(group_id), self._heartbeat_ms)
            self._groups[group_id] = watched
            if self._is_stopping:
                watched.end(_make_stopping())
        watched.watchers += 1
        self._watchers += 1
        return watched

    def leave(self, watched: WatchedGroup) -> None:
        """One less does."""
        self._watchers -= 1
        watched.watchers -= 1
        if watched.watchers == 0:
            watched.close()
            if self._groups.get(watched.changes.group_id) is watched:
                del self._groups[watched.changes.group_id]

    def stop(self) -> None:
        """End all: the server stops."""
        self._is_stopping = True
        for watched in self._groups.values():
            watched.end(_make_stopping())


def _make_stopping() -> GroupError:
    return CoordinatorNotAvailable("The server is stopping.")
