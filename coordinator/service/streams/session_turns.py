"""Schedules sessions with many actions, so that other requests are served in between.

One message may hold a thousand actions. The first few are handled at once, unless other sessions
wait; the rest in slices, one slice of one session per event-loop iteration. An incoming call takes
about two iterations, so it waits for about two slices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

FIRST_ACTIONS: Final = 10
"""The number of actions of a message that are handled as it comes in."""
ACTIONS: Final = 20
"""The number of actions in a slice; each takes about 50 µs."""
ACTION_BYTES: Final = 256
"""A larger action counts as several: a commit of 10,000 partitions takes about 30 ms."""


class Turns:
    """The sessions that wait for their turn. Used on one event loop."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take_if_others_wait(self) -> None:
        """As ``take``, but returns at once if nobody waits."""
        if self._waiting:
            await self.take()

    async def take(self) -> None:
        """Return when it is the caller's turn, in a later event-loop iteration."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._give, loop)
        await turn

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting
        while waiting and waiting[0].done():
            waiting.popleft()
        if waiting:
            waiting[0].set_result(None)
            # It stays at the front until the next iteration, so that no second chain of
            # callbacks starts.
            loop.call_soon(self._give, loop)
