"""Connections for one user alone: in Muster's own name, or for a client's own requests."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from gateway.codec.client_frames import ClientRequest
from upstream.cluster.cluster import ClusterUnreachable
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.connections.connection import Connection
from upstream.cluster.connections.frames import read_frame
from upstream.cluster.connections.logging_in import log_in


class OwnLink:
    """A ``BrokerLink``: logged in, and again between two requests when the session is ending."""

    def __init__(self, connection: Connection, where: str, settings: ClusterSettings) -> None:
        self._connection = connection
        self._where = where
        self._settings = settings
        self._login = asyncio.Lock()

    async def ask(self, request: ClientRequest, *, timeout_ms: int = 30_000) -> Any:
        """Send, and return the response entity. Raises ``ClusterUnreachable``."""
        async with self._login:
            # A broker in which a request waits does not read on: then the session's end is found
            # by the next request.
            if self._connection.needs_login and self._connection.is_idle:
                await log_in(self._connection, self._where, self._settings)
        return await self._connection.ask(request, timeout_ms)

    def close(self) -> None:
        """Close; what waits gets ``ClusterUnreachable``."""
        self._connection.close()


class StreamLink:
    """A ``RawLink`` over a stream."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        settings: ClusterSettings,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._frame_bytes_max = settings.frame_bytes_max

    def send(self, frame: bytes) -> None:
        """Send a whole frame, size included."""
        if not self._writer.is_closing():
            self._writer.write(frame)

    async def read_frame(self) -> bytes | None:
        """The next frame, size included; ``None`` at the end, whatever ended it."""
        try:
            return await read_frame(self._reader, self._frame_bytes_max)
        except (OSError, ClusterUnreachable):
            self.close()
            return None

    async def drain(self) -> None:
        """Wait while too much is unsent. The end is for ``read_frame`` to tell."""
        try:
            await self._writer.drain()
        except OSError:
            self.close()

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Give the connection away. Raises ``ClusterUnreachable`` if it is closed."""
        transport = self._writer.transport
        if transport.is_closing() or self._reader.at_eof():
            # Its end has been told already, and would not be told again.
            self.close()
            raise ClusterUnreachable("the broker has closed the connection")
        transport.set_protocol(protocol)
        return cast(asyncio.Transport, transport)

    def close(self) -> None:
        """Close at once."""
        self._writer.transport.abort()
