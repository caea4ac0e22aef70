"""Who may ask a reader of the past: in turn, and nobody has all readers."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from model.caller import Caller

WAITING_MAX: Final = 64
"""The most requests that may be waiting for, or in, a reader."""

WAITING_OF_ONE_MAX: Final = 32
"""The most of them that one holder may have."""

Holder: TypeAlias = str
"""Who asks: a principal at a host, over however many connections."""


class NoPlace(Exception):
    """Too many requests wait; ``is_own``: of the one who asks."""

    def __init__(self, *, is_own: bool) -> None:
        super().__init__(is_own)
        self.is_own = is_own


def compute_holder(caller: Caller) -> Holder:
    """Whose requests the caller's are."""
    return f"{caller.principal} {caller.client_host}"


class Place:
    """A reader is free for whoever has this."""

    __slots__ = ("busy",)

    def __init__(self) -> None:
        self.busy: asyncio.Future[None] | None = None
        """The reader is free for others when this is done; at once if it is ``None``."""


class ReaderPlaces:
    """``places`` readers. One holder has all but one at most, unless there is one alone."""

    __slots__ = ("_free", "_held", "_most", "_requests", "_waiting")

    def __init__(self, places: int) -> None:
        self._free = places
        self._most = max(places - 1, 1)
        self._held: Counter[Holder] = Counter()
        self._requests: Counter[Holder] = Counter()
        self._waiting: OrderedDict[Holder, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, holder: Holder) -> AsyncIterator[Place]:
        """Wait for a place. Raises ``NoPlace``."""
        if self._requests[holder] >= WAITING_OF_ONE_MAX:
            raise NoPlace(is_own=True)
        if self._requests.total() >= WAITING_MAX:
            raise NoPlace(is_own=False)
        self._requests[holder] += 1
        try:
            await self._enter(holder)
            place = Place()
            try:
                yield place
            finally:
                if place.busy is None:
                    self._leave(holder)
                else:
                    place.busy.add_done_callback(lambda _: self._leave(holder))
        finally:
            _reduce(self._requests, holder)

    async def _enter(self, holder: Holder) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, deque()).append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(holder)
            raise

    def _leave(self, holder: Holder) -> None:
        self._free += 1
        _reduce(self._held, holder)
        if holder in self._waiting:
            self._waiting.move_to_end(holder)
        self._admit()

    def _admit(self) -> None:
        """Give free places to who waits; who gets or leaves one is last in the line of holders."""
        for holder in list(self._waiting):
            turns = self._waiting[holder]
            while turns and turns[0].done():
                turns.popleft()
            if turns and self._free and self._held[holder] < self._most:
                self._free -= 1
                self._held[holder] += 1
                turns.popleft().set_result(None)
                self._waiting.move_to_end(holder)
            if not turns:
                del self._waiting[holder]


def _reduce(counts: Counter[Holder], holder: Holder) -> None:
    counts[holder] -= 1
    if not counts[holder]:
        del counts[holder]
