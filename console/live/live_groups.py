"""The groups that are looked at, and who is told of their changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Hashable
from typing import Final, TypeAlias

import grpc

from console.live.fragments import Render
from console.live.live_group import Followed, LiveGroup
from console.streams import encode_event
from coordinator.service.calls.local_calls import LocalCalls, Visitor

LINGER_S: Final = 10.0
"""So long a group is kept that nobody is told of: the page was opened, its stream has yet to be."""
GROUPS_MAX: Final = 64
"""The most groups that are kept without a reader."""
PACE_S: Final = 0.1
"""The least time between two events of one stream."""

_ASK_AGAIN: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE)
"""What need not be so for whoever opens the stream again, which browsers do by themselves."""

Key: TypeAlias = tuple[str, Hashable]


class LiveGroups:
    """All groups that are looked at. Two visitors see the same if they have the same rights."""

    __slots__ = ("_followed", "_groups")

    def __init__(self) -> None:
        self._groups: dict[Key, LiveGroup] = {}
        self._followed = Followed()

    def __len__(self) -> int:
        return len(self._groups)

    def find(
        self,
        calls: LocalCalls,
        group_id: str,
        visitor: Visitor,
        rights: Hashable,
        render: Render,
    ) -> LiveGroup:
        """The group as the visitor sees it; ``rights`` is the same of all who see the same."""
        now_s = asyncio.get_running_loop().time()
        self._forget(now_s)
        key = (group_id, rights)
        live = self._groups.pop(key, None)
        if live is None or live.error is not None:
            live = LiveGroup(calls, group_id, visitor, render, self._followed)
        live.used_s = now_s
        self._groups[key] = live
        return live

    def _forget(self, now_s: float) -> None:
        idle = [key for key, live in self._groups.items() if not live.readers]
        for number, key in enumerate(idle):
            is_old = now_s - self._groups[key].used_s > LINGER_S
            if is_old or len(idle) - number > GROUPS_MAX:
                del self._groups[key]


async def make_events(live: LiveGroup, tag: str) -> AsyncGenerator[bytes, None]:
    """The events of a group from a version on.

    Each is made when the one before has been taken: a slow reader gets the newest, and nothing
    queues up for it.
    """
    seen = live.fragments.find_seen(tag)
    live.add_reader()
    try:
        while True:
            await live.wait(seen)
            if live.error is not None:
                if live.error.status in _ASK_AGAIN:
                    return
                yield encode_event("end", json.dumps(live.error.message))
                return
            data, seen = live.fragments.compute_changes(seen), live.fragments.version
            yield encode_event("change", data, live.fragments.tag)
            await asyncio.sleep(PACE_S)
    finally:
        live.used_s = asyncio.get_running_loop().time()
        live.remove_reader()
