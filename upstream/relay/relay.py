"""The relay of one broker: its listener, and its connections."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, cast

from gateway.tls.tls_front import Handshakes, TlsFront
from upstream.relay.relay_connection import RelayConnection
from upstream.relay.relaying import Relaying

_BACKLOG: Final = 1_024


class Relay:
    """Listens on ``port``."""

    def __init__(self, relaying: Relaying, node_id: int, port: int) -> None:
        self.port = port
        self.connections: set[RelayConnection] = set()
        self._relaying = relaying
        self._node_id = node_id
        self._server: asyncio.Server | None = None
        settings = relaying.settings
        self._handshakes = (
            None
            if settings.tls is None
            else Handshakes(
                settings.tls, settings.handshakes_max, settings.handshake_timeout_ms / 1_000
            )
        )

    async def start(self) -> None:
        """Listen. Raises ``OSError``."""
        settings = self._relaying.settings
        self._server = await asyncio.get_running_loop().create_server(
            self._make if self._handshakes is None else self._make_front,
            settings.bind_host,
            self.port,
            backlog=_BACKLOG,
        )

    def _make_front(self) -> asyncio.BaseProtocol:
        assert self._handshakes is not None
        return TlsFront(self._make, self._handshakes)

    def _make(self) -> asyncio.Protocol:
        if len(self.connections) >= self._relaying.settings.connections_max:
            self._relaying.statistics.relay_connections_refused += 1
            return _Refused()
        connection = RelayConnection(self._relaying, self._node_id, self._forget)
        self.connections.add(connection)
        self._note_connections()
        return connection

    def _forget(self, connection: RelayConnection) -> None:
        self.connections.discard(connection)
        self._note_connections()

    def _note_connections(self) -> None:
        self._relaying.statistics.relay_connections_now[self._node_id] = len(self.connections)

    def check(self, now: float) -> None:
        """Close connections that are idle or stuck."""
        for connection in tuple(self.connections):
            connection.check(now)

    def close_connections(self, reason: str) -> None:
        """Close all connections."""
        for connection in tuple(self.connections):
            connection.close(reason)

    async def stop(self, reason: str) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        if self._handshakes is not None:
            self._handshakes.abort()
        self.close_connections(reason)
        self._relaying.statistics.relay_connections_now.pop(self._node_id, None)
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._server.wait_closed()


class _Refused(asyncio.Protocol):
    """A connection above the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio: close it."""
        cast(asyncio.Transport, transport).abort()
