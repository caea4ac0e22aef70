"""Notices of changes of groups, for who shows a group while it changes.

A notice says no more than that the group may look different now: its members, epochs, states,
target, owners, or who waits for whom. Whoever gets it reads the group, as a command. Notices come
once the change is durable; what a classic group shows and no record has, such as who has joined so
far, is told at once. Commits are no changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import TracebackType

from model.ids import GroupId


class GroupChanges:
    """Implements ``coordinator.runtime.api.GroupChanges``."""

    __slots__ = ("_changed", "_notices", "group_id")

    def __init__(self, notices: GroupNotices, group_id: GroupId) -> None:
        self._notices = notices
        self._changed = asyncio.Event()
        self.group_id = group_id

    def __enter__(self) -> GroupChanges:
        self._notices.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._notices.remove(self)

    async def wait(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    def tell(self) -> None:
        self._changed.set()


class GroupNotices:
    """Who follows which group. A group that nobody follows costs nothing."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: dict[GroupId, dict[GroupChanges, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_group.values()))

    def add(self, changes: GroupChanges) -> None:
        self._by_group.setdefault(changes.group_id, {})[changes] = None

    def remove(self, changes: GroupChanges) -> None:
        followers = self._by_group.get(changes.group_id, {})
        followers.pop(changes, None)
        if not followers:
            self._by_group.pop(changes.group_id, None)

    def look_at(self, changed: Collection[GroupId]) -> None:
        """Tell who follows these groups."""
        by_group = self._by_group
        if not by_group:
            return
        few, many = (by_group, changed) if len(by_group) < len(changed) else (changed, by_group)
        for group_id in few:
            if group_id in many:
                self.note(group_id)

    def note(self, group_id: GroupId) -> None:
        """Tell who follows this group."""
        for changes in self._by_group.get(group_id, ()):
            changes.tell()
