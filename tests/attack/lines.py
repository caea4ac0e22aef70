"""Many TLS connections at a time, with frames of Kafka's protocol in them; asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from typing import Any, Self

from tests.support.wire.frames import make_frame, parse

_CHUNK = 1 << 18
_CLOSE_S = 0.2


class Line:
    """One connection. Where the server has closed it, one of ``GONE`` is raised."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.sent = 0

    @classmethod
    async def open(
        cls, address: tuple[str, int], context: ssl.SSLContext | None, source: str = ""
    ) -> Self:
        """Connect from the address ``source``, and make a handshake if there is a context."""
        reader, writer = await asyncio.open_connection(
            *address,
            ssl=context,
            server_hostname=address[0] if context else None,
            local_addr=(source, 0) if source else None,
        )
        return cls(reader, writer)

    async def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """Send a request and return the response."""
        await self.send(make_frame(key, version, **fields))
        return parse(key, version, await self.receive())[1]

    async def send(self, data: bytes) -> None:
        # asyncio drops what is written after the end of a connection, and sees the end in a turn of
        # the loop, which ``drain`` does not wait for.
        await asyncio.sleep(0)
        if self._reader.at_eof() or self._writer.is_closing():
            raise ConnectionResetError("the server has closed the connection")
        self._writer.write(data)
        await self._writer.drain()
        self.sent += len(data)

    async def send_much(self, size: int) -> None:
        """So many bytes, of which never more than a chunk waits here."""
        chunk = bytes(_CHUNK)
        for start in range(0, size, _CHUNK):
            await self.send(chunk[: size - start])

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self.receive_bytes(4))
        return await self.receive_bytes(int(size))

    async def receive_bytes(self, count: int) -> bytes:
        return await self._reader.readexactly(count)

    async def wait_until_closed(self) -> None:
        """Until the server closes; what comes before is dropped."""
        with contextlib.suppress(OSError):
            while await self._reader.read(_CHUNK):
                pass

    async def close(self) -> None:
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), _CLOSE_S)
        except TimeoutError:
            # The server does not say goodbye.
            self._writer.transport.abort()
        except OSError:
            pass


GONE = (OSError, asyncio.IncompleteReadError)
"""What a connection raises that the server has closed."""


def make_client_hello(context: ssl.SSLContext) -> bytes:
    """The first bytes of a handshake."""
    sent = ssl.MemoryBIO()
    line = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        line.do_handshake()
    return sent.read()
