"""Who waits for one of a few places: in turn by host, and for one host in turn by connection."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

WAITING_MAX: Final = 1_024
WAITING_OF_HOST_MAX: Final = 64
WAITING_OF_CONNECTION_MAX: Final = 8

_Turns: TypeAlias = "deque[asyncio.Future[None]]"


class LineTooLong(Exception):
    """Too many wait already: of this connection, of its host, or of all."""


class WaitingCounts:
    """How many wait, by connection and host, within the three limits."""

    __slots__ = ("_of_connection", "_of_host", "_total")

    def __init__(self) -> None:
        self._of_connection: Counter[str] = Counter()
        self._of_host: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def counted(self, host: str, connection: str) -> Iterator[None]:
        """Count one that waits. Raises ``LineTooLong`` instead at a limit."""
        if (
            self._total >= WAITING_MAX
            or self._of_host[host] >= WAITING_OF_HOST_MAX
            or self._of_connection[connection] >= WAITING_OF_CONNECTION_MAX
        ):
            raise LineTooLong
        self._change(host, connection, 1)
        try:
            yield
        finally:
            self._change(host, connection, -1)

    def _change(self, host: str, connection: str, by: int) -> None:
        self._total += by
        for counts, key in ((self._of_host, host), (self._of_connection, connection)):
            counts[key] += by
            if not counts[key]:
                del counts[key]


class FairLine:
    """``places`` are taken by ``enter`` and given up by ``leave``."""

    __slots__ = ("_free", "_hosts")

    def __init__(self, places: int) -> None:
        self._free = places
        self._hosts: OrderedDict[str, OrderedDict[str, _Turns]] = OrderedDict()

    async def enter(self, host: str, connection: str) -> None:
        """Return with a place."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hosts.setdefault(host, OrderedDict()).setdefault(connection, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give the place to whoever is next."""
        turn = self._take_next()
        if turn is None:
            self._free += 1
        else:
            turn.set_result(None)

    def _take_next(self) -> asyncio.Future[None] | None:
        while self._hosts:
            host, connections = self._hosts.popitem(last=False)
            connection, turns = connections.popitem(last=False)
            turn = turns.popleft()
            if turns:
                connections[connection] = turns
            if connections:
                self._hosts[host] = connections
            if not turn.done():
                return turn
        return None
