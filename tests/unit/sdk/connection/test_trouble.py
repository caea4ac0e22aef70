"""What a join that comes to nothing says of the place where it asked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import grpc.aio
import pytest

import muster
from tests.support.service.stand import Stand

Handler: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def close_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As the Kafka port does with what is no request."""
    await reader.read(10)


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1_000):
        pass


async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
    await writer.drain()


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[str]:
    handling: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handling.add(task)
        try:
            with suppress(OSError):
                await handler(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            handling.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        if handling:
            await asyncio.wait(handling, timeout=10)


async def fail(target: str) -> tuple[str, str]:
    """What members of both protocols say."""
    member = muster.Member(target, "g", topics=["orders"], join_timeout_ms=6_000)
    classic = muster.ClassicMember(target, "g", topics=["orders"], join_timeout_ms=6_000)
    said = await asyncio.gather(member.join(), classic.join(), return_exceptions=True)
    for error in said:
        assert isinstance(error, muster.JoinTimeout | muster.JoinRefused), error
    return str(said[0]), str(said[1])


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (close_at_once, "closed the connection before it sent anything: is it the Kafka port"),
        (speak_http, "does not speak gRPC: is it the HTTP port"),
        (say_nothing, "accepted the connection, but is silent"),
    ],
)
async def test_a_wrong_port_is_told(handler: Handler, sentence: str) -> None:
    async with listening(handler) as target:
        for said in await fail(target):
            assert sentence in said
            assert target in said


async def test_a_connection_that_is_refused_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for said in await fail(f"127.0.0.1:{taken.getsockname()[1]}"):
            assert "connection refused: nothing listens there" in said


async def test_a_name_that_nobody_knows_is_told() -> None:
    for said in await fail("no-such-host.invalid:1"):
        assert "no-such-host.invalid" in said
        assert "the host name is unknown" in said


@asynccontextmanager
async def another_server() -> AsyncIterator[str]:
    """One of gRPC, with other services."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def test_another_server_of_grpc_is_told() -> None:
    async with another_server() as target:
        for said in await fail(target):
            assert "not a Muster server" in said


async def test_what_broke_a_stream_before_its_status_came_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trigger: a busy machine, where a stream is written to before gRPC has read its status."""

    def break_in_grpc(*_: object) -> None:
        nothing = grpc.aio.Metadata()
        code, details = grpc.StatusCode.INTERNAL, "Internal error from Core"
        raise grpc.aio.AioRpcError(code, nothing, nothing, details)

    monkeypatch.setattr("muster.connection.client.Stream", break_in_grpc)
    async with another_server() as target:
        assert "not a Muster server" in (await fail(target))[0]


async def test_a_server_that_comes_later_is_joined(stand: Stand) -> None:
    await stand.stop_server()
    member = muster.Member(stand.target, "g", topics=["orders"])
    joining = asyncio.create_task(member.join())
    await asyncio.wait((joining,), timeout=1.0)
    await stand.restart()
    await joining
    await member.close()


async def test_who_waits_for_its_join_need_not_poll() -> None:
    """It failed for that poll had not been called, and not for what kept it waiting."""
    async with listening(say_nothing) as target:
        pass
    member = muster.Member(
        target, "g", topics=["orders"], max_poll_interval_ms=50, join_timeout_ms=300
    )
    with pytest.raises(muster.JoinTimeout):
        await member.join()
