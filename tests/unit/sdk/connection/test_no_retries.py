"""What gRPC does not send is failed at once: Muster tries again, with a pause and a limit."""

from __future__ import annotations

import asyncio
import struct

import grpc
import grpc.aio
import pytest

import muster
from muster.v1 import group_pb2

PREFACE = 24
SETTINGS, MAX_CONCURRENT_STREAMS = 4, 3
OPEN_S = 0.05


def make_frame(kind: int, flags: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2, of the connection."""
    return (
        struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", 0) + payload
    )


async def test_a_call_that_never_left_is_not_tried_again() -> None:
    """Bug: gRPC tried it again and again within one call, which took all memory and never ended."""
    connections = 0

    async def close_soon(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readexactly(PREFACE)
        allows_none = struct.pack(">HI", MAX_CONCURRENT_STREAMS, 0)
        writer.write(make_frame(SETTINGS, 0, allows_none) + make_frame(SETTINGS, 1))
        await asyncio.sleep(OPEN_S)
        writer.close()

    server = await asyncio.start_server(close_soon, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, muster.Client(f"127.0.0.1:{port}") as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.stub.FetchOffsets(group_pb2.FetchOffsetsRequest(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert connections == 1
