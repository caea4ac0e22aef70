"""What ends the waits of a classic member early: it is closed, or it was lost."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from muster.classic.classic_membership import ClassicMembership, Lost


class Closing(Exception):
    """The application closes the member."""


class Interruption:
    """``is_closing`` is set by ``close``; ``ClassicMembership.lost`` is the other cause."""

    __slots__ = ("_membership", "_raised", "is_closing")

    def __init__(self, membership: ClassicMembership) -> None:
        self._membership = membership
        self._raised = asyncio.Event()
        self.is_closing = False

    def close(self) -> None:
        """The application closes the member."""
        self.is_closing = True
        self._raised.set()

    def lose(self, lost: Lost) -> None:
        """The member was lost."""
        self._membership.lost = lost
        self._raised.set()

    def clear(self) -> None:
        """The loss was handled."""
        self._membership.lost = None
        self._raised.clear()

    def check(self) -> None:
        """Raise ``Closing`` or ``Lost`` if the member is closed or lost."""
        self.check_closing()
        self.check_lost()

    def check_closing(self) -> None:
        """Raise ``Closing`` if the member is closed."""
        if self.is_closing:
            raise Closing

    def check_lost(self) -> None:
        """Raise ``Lost`` if the member is lost."""
        if self._membership.lost is not None:
            raise self._membership.lost

    async def pause(self, delay_s: float) -> None:
        """Wait for half to all of the delay. Raises what interrupts it."""
        try:
            async with asyncio.timeout(delay_s * random.uniform(0.5, 1.0)):
                await self._raised.wait()
        except TimeoutError:
            return
        self.check()

    async def race(self, call: Any) -> Any:
        """Await a call; ``None`` if the connection was closed. Raises what interrupts it."""
        answering = asyncio.ensure_future(call)
        interrupted = asyncio.ensure_future(self._raised.wait())
        try:
            await asyncio.wait((answering, interrupted), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self.check()
            return None if answering.cancelled() else answering.result()
        finally:
            interrupted.cancel()
            answering.cancel()
