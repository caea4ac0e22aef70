"""A connection on the loop, with requests as plain values: names of fields, no entities."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, Final, Self

from tests.support.wire.frames import frame, make_request, parse

PATIENCE_S = 30.0
"""For what comes at once on a machine that does not stand still."""
_LINGER_0: Final = struct.pack("ii", 1, 0)


class Connection:
    """Sends requests and reads answers, one after the other or each by itself.

    ``correlation_id`` is that of the last request. An answer is waited for ``patience_s`` where
    nothing else is said, with None for ever.
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
        cls, address: str, client_id: str = "c", patience_s: float | None = PATIENCE_S
    ) -> Self:
        """Connect to HOST:PORT."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)), client_id, patience_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def send(self, key: int, version: int, /, **fields: Any) -> int:
        """Send a request; fields that are not given have their defaults. The correlation id."""
        self.correlation_id += 1
        request = make_request(key, version, **fields)
        self.writer.write(frame(key, version, self.correlation_id, request, self.client_id))
        return self.correlation_id

    async def read_frame(self, within_s: float | None = None) -> bytes:
        """The next answer without its size."""
        async with asyncio.timeout(self.patience_s if within_s is None else within_s):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def read(self, key: int, version: int, within_s: float | None = None) -> tuple[int, Any]:
        """The next answer as (correlation id, entity)."""
        return parse(key, version, await self.read_frame(within_s))

    async def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """Send and read the answer."""
        sent = self.send(key, version, **fields)
        correlation_id, response = await self.read(key, version)
        assert correlation_id == sent
        return response

    async def is_closed(self, within_s: float = PATIENCE_S) -> bool:
        """Whether the server closes the connection in time, having sent nothing more."""
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
        """Close it, and wait until nothing of it is left here."""
        self.writer.close()
        await self.writer.wait_closed()

    def reset(self) -> None:
        """End it without a word: a TCP reset."""
        line = self.writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
        self.writer.transport.abort()
