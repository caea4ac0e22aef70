"""HTTP: strangers may have so many connections, and so long for the head of a request."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any

import pytest

from cli import http
from cli.http import HttpServer, HttpSettings
from gateway.listening import ACCEPTED

MANY = 200


async def make_metrics(accept: str) -> tuple[str, bytes]:
    return "text/plain", b"metrics"


async def start(settings: HttpSettings) -> tuple[HttpServer, int]:
    server = HttpServer(lambda: True, make_metrics, {}, settings)
    return server, await server.start("127.0.0.1", 0)


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_the_head_of_a_request_has_a_time() -> None:
    server, port = await start(HttpSettings(request_timeout_ms=50))
    try:
        assert await ask(port, b"") == b"", "closed without a word"
        assert await ask(port, b"GET /livez HTTP/1.1\r\nX: ") == b""
        whole = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
        assert b"200 OK" in await ask(port, whole + b"Connection: close\r\n\r\n")
        kept = await ask(port, whole + b"\r\nGET /livez HT")
        assert kept.count(b"200 OK") == 1, "the second one never came, and was not waited for"
    finally:
        await server.stop()


async def test_connections_are_bounded() -> None:
    server, port = await start(HttpSettings(connections_max=2))
    try:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert await ask(port, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") == b""
        held[0][1].close()
        await asyncio.sleep(0.05)
        request = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert b"200 OK" in await ask(port, request)
        held[1][1].close()
    finally:
        await server.stop()


async def count_accepted(patch: pytest.MonkeyPatch) -> int:
    """The most that were accepted in one turn of the loop, of many that wait."""
    turn, accepted = 0, Counter[int]()
    make_protocol = http.make_protocol

    def make_noting(settings: HttpSettings) -> Any:
        class Noting(make_protocol(settings)):  # type: ignore[misc]
            def connection_made(self, transport: Any) -> None:
                accepted[turn] += 1
                super().connection_made(transport)

        return Noting

    patch.setattr(http, "make_protocol", make_noting)
    server, port = await start(HttpSettings(backlog=MANY))
    lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(MANY)]
    async with asyncio.timeout(10):
        while accepted.total() < MANY:
            turn += 1
            await asyncio.sleep(0)
    for line in lines:
        line.close()
    await server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    return max(accepted.values())


def test_several_are_accepted_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: uvloop accepted one; a probe waited behind all that a stranger had opened."""
    uvloop = pytest.importorskip("uvloop")
    assert uvloop.run(count_accepted(monkeypatch)) >= ACCEPTED
