"""HTTP: strangers may have so many connections, and so long for the head of a request."""

from __future__ import annotations

import asyncio

from cli.http import HttpServer, HttpSettings


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
