"""An asyncio connection that takes requests as plain field values."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from typing import Any, Final, Self

from tests.support.wire.frames import frame, make_request, parse

PATIENCE_S = 30.0
"""For responses that are immediate unless the machine stalls."""
_LINGER_0: Final = struct.pack("ii", 1, 0)


class Connection:
    """Sends requests and reads responses, in lockstep or independently.

    ``correlation_id`` is that of the last request. A read waits ``patience_s`` unless told
    otherwise; None waits forever.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client_id: str = "c",
        patience_s: float | None = PATIENCE_S,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.client_id = client_id
        self.patience_s = patience_s
        self.correlation_id = 0

    @classmethod
    async def open(
        cls,
        address: str,
        client_id: str = "c",
        patience_s: float | None = PATIENCE_S,
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        """Connect to HOST:PORT."""
        host, _, port = address.rpartition(":")
        streams = await asyncio.open_connection(host, int(port), ssl=tls)
        return cls(*streams, client_id, patience_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def send(self, key: int, version: int, /, **fields: Any) -> int:
        """Send a request; fields left out have their defaults. Returns the correlation id."""
        self.correlation_id += 1
        request = make_request(key, version, **fields)
        self.writer.write(frame(key, version, self.correlation_id, request, self.client_id))
        return self.correlation_id

    async def read_frame(self, within_s: float | None = None) -> bytes:
        """The next response without its size."""
        async with asyncio.timeout(self.patience_s if within_s is None else within_s):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def read(self, key: int, version: int, within_s: float | None = None) -> tuple[int, Any]:
        """The next response as (correlation id, entity)."""
        return parse(key, version, await self.read_frame(within_s))

    async def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """Send a request and read its response."""
        sent = self.send(key, version, **fields)
        correlation_id, response = await self.read(key, version)
        assert correlation_id == sent
        return response

    async def is_closed(self, within_s: float = PATIENCE_S) -> bool:
        """Whether the server closes the connection in time, without sending anything more."""
        try:
            async with asyncio.timeout(within_s):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self.writer.close()

    async def end(self) -> None:
        """Close the connection, and wait until it is closed."""
        self.writer.close()
        await self.writer.wait_closed()

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        line = self.writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
        self.writer.transport.abort()
