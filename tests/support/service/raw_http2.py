"""Raw HTTP/2, to send what a well-behaved client never sends."""

from __future__ import annotations

import asyncio
import struct
from types import TracebackType

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header_block(**extra: str) -> bytes:
    """Headers of a gRPC call, each a literal without indexing (RFC 7541, 6.2.2)."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/muster.v1.GroupService/Heartbeat",
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
        **{key.replace("_", "-"): value for key, value in extra.items()},
    }
    block = b""
    for key, value in headers.items():
        for text in (b"\0" + _string(key), _string(value)):
            block += text
    return block


def _string(text: str) -> bytes:
    data = text.encode("latin-1")
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest, length = len(data) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + data


class RawConnection:
    """A socket to the server; ``frames`` has the types of the received frames."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.received = b""

    async def __aenter__(self) -> RawConnection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def greet(self) -> None:
        await self.send(PREFACE + frame(SETTINGS, 0, 0))

    async def read_to_end(self, within_s: float = 30.0) -> None:
        """Wait until the server closes the connection; fails if it does not."""
        async with asyncio.timeout(within_s):
            try:
                while data := await self._reader.read(65_536):
                    self.received += data
            except ConnectionError:
                return

    @property
    def frames(self) -> list[int]:
        kinds, position = [], 0
        while position + 9 <= len(self.received):
            length = int.from_bytes(self.received[position : position + 3], "big")
            kinds.append(self.received[position + 3])
            position += 9 + length
        return kinds
