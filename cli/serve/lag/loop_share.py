"""Paces work in the background, so that it takes but a part of the event loop's time."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

WORK_S: Final = 0.002
"""Work for this long, then rest."""
SHARE: Final = 0.05
"""The part of the time in which work is done."""


class LoopShare:
    """``rest`` is called between pieces of work that take less than ``WORK_S``."""

    def __init__(self) -> None:
        self._spent_s = 0.0
        self._began_s = perf_counter()

    async def rest(self) -> None:
        """Let others have their turn, for as long as the work so far demands it."""
        self._spent_s += perf_counter() - self._began_s
        if self._spent_s >= WORK_S:
            spent_s, self._spent_s = self._spent_s, 0.0
            await asyncio.sleep(spent_s / SHARE - spent_s)
        self._began_s = perf_counter()

    def go_on(self) -> None:
        """Somebody else has worked meanwhile, whose time does not count."""
        self._began_s = perf_counter()
