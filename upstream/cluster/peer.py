"""One broker: its address, and the one connection to it that all requests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import uniform
from typing import Any

from gateway.codec.client_frames import ClientRequest
from upstream.cluster.cluster import NotSent
from upstream.cluster.connections.connection import Connection
from upstream.cluster.connections.opening import Opener


class Peer:
    """``versions`` and ``features`` are those of the last connection.

    ``on_opened`` is called after each new connection, ``on_lost`` after each that has ended.
    """

    def __init__(
        self,
        opener: Opener,
        host: str,
        port: int,
        on_opened: Callable[[], None] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.host = host
        self.port = port
        self.versions: Mapping[int, range] = {}
        self.features: Mapping[str, int] = {}
        self._on_opened = on_opened
        self._on_lost = on_lost
        self._opener = opener
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._failures = 0
        self._retry_at_s = 0.0
        self._is_retired = False

    @property
    def is_connected(self) -> bool:
        """Whether a request would be sent at once."""
        return self._connection is not None and self._connection.is_usable

    @property
    def wait_s(self) -> float:
        """How long the next attempt to connect has to wait."""
        return max(self._retry_at_s - asyncio.get_running_loop().time(), 0.0)

    async def ask(self, request: ClientRequest, timeout_ms: int) -> Any:
        """Ask once. Raises ``NotSent`` without a connection, and other ``ClusterUnreachable``."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + timeout_ms / 1_000
        try:
            async with asyncio.timeout_at(end_s):
                connection = await self.connect()
        except TimeoutError:
            raise NotSent(f"no connection to {self} within {timeout_ms} ms") from None
        left_ms = max(int((end_s - loop.time()) * 1_000), 1)
        return await connection.ask(request, left_ms)

    async def connect(self) -> Connection:
        """The shared connection, opened if there is none. Raises ``OpeningFault``."""
        found = self._connection
        if found is not None and found.is_usable:
            if not found.needs_login:
                return found
            # Another one is the simplest second login: nothing has to be held back meanwhile.
            found.retire()
        if self._is_retired:
            raise NotSent(f"{self} is not a broker of the cluster any more")
        if self._opening is None:
            self._begin()
        opening = self._opening
        assert opening is not None
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if opening.cancelled() and task is not None and not task.cancelling():
                raise NotSent(f"{self} is not a broker of the cluster any more") from None
            raise

    def warm(self) -> None:
        """Open the connection if there is none, without waiting for it."""
        if not (self.is_connected or self._is_retired) and self._opening is None:
            self._begin()

    def _begin(self) -> None:
        self._opening = asyncio.create_task(self._open())
        self._opening.add_done_callback(self._note_opened)

    async def _open(self) -> Connection:
        await asyncio.sleep(self.wait_s)
        return await self._opener.open(self.host, self.port)

    def _note_opened(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if opening.cancelled():
            return
        settings = self._opener.settings
        if opening.exception() is not None:
            wait_ms = min(settings.backoff_ms << min(self._failures, 20), settings.backoff_max_ms)
            self._failures += 1
            now_s = asyncio.get_running_loop().time()
            self._retry_at_s = now_s + wait_ms / 1_000 * uniform(0.8, 1.2)
            return
        self._failures = 0
        connection = self._connection = opening.result()
        connection.on_closed = self._on_lost
        self.versions, self.features = connection.versions, connection.features
        if self._is_retired:
            connection.retire()
            return
        self._on_opened()

    def retire(self) -> None:
        """Open nothing more; the connection closes when all on it is answered."""
        self._is_retired = True
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.retire()

    def close(self) -> None:
        """Close at once."""
        self._is_retired = True
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.close()

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
