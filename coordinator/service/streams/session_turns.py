"""Sessions with much to do have their turns one after another, so that others are served between.

A message of a session may hold a thousand actions. The first few are handled as they come, unless
other sessions wait; of the others a slice in a turn of the loop, of one session at a time. A call
that comes is taken in some two turns, so that those of others wait for that many slices each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

FIRST_ACTIONS: Final = 10
"""Actions of a message that are handled when it comes."""
ACTIONS: Final = 20
"""Actions that are handled in a turn, of one session, each in some 50 µs."""
ACTION_BYTES: Final = 256
"""An action of more counts as several: one may commit 10,000 partitions, in some 30 ms."""


class Turns:
    """Who waits for a turn. Used on one loop."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take_if_others_wait(self) -> None:
        """As ``take``; returns at once where nobody waits."""
        if self._waiting:
            await self.take()

    async def take(self) -> None:
        """Returns when it is one's turn, which is never at once."""
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
            # It stays at the front until the next turn, so that nobody begins a second row.
            loop.call_soon(self._give, loop)
