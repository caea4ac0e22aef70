"""HTTP: limits on connections, and on the time to send the head of a request."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from cli.serve import http
from cli.serve.http import HttpServer
from cli.serve.http_protocol import HttpSettings
from gateway.connection.listener import ACCEPTED
from tests.support.waiting import until, until_answered

MANY = 200

_HOUR_S = 3_600.0
_HOUR_MS = 3_600_000
_KEPT_S = 5
"""uvicorn's own time for a connection between two requests."""
_LIMIT_S = 60
_HEAD = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
_LAST = _HEAD + b"Connection: close\r\n\r\n"


async def make_metrics(accept: str) -> tuple[str, Sequence[bytes]]:
    return "text/plain", (b"met", b"rics")


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


class HeadTimes:
    """The timers of connections waiting for a head. The test fires them, without a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._handles: list[tuple[float, asyncio.TimerHandle]] = []
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def note(delay: float, callback: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
            handle = call_later(delay, callback, *args)
            if delay in (_HOUR_S, _KEPT_S):
                self._handles.append((delay, handle))
            return handle

        monkeypatch.setattr(loop, "call_later", note)

    def find_running(self, delay_s: float) -> list[asyncio.TimerHandle]:
        return [each for delay, each in self._handles if delay == delay_s and not each.cancelled()]

    def pass_by(self, delay_s: float) -> None:
        """Fire all running timers."""
        for handle in self.find_running(delay_s):
            handle._run()
            handle.cancel()


async def test_the_head_of_a_request_has_a_time() -> None:
    server, port = await start(HttpSettings(request_timeout_ms=50))
    try:
        assert await ask(port, b"") == b"", "closed without a word"
        assert await ask(port, b"GET /livez HTTP/1.1\r\nX: ") == b""
    finally:
        await server.stop()


async def test_a_request_whose_head_has_come_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def make_slowly(accept: str) -> tuple[str, Sequence[bytes]]:
        asked.set()
        await answered.wait()
        return await make_metrics(accept)

    times = HeadTimes(monkeypatch)
    server = HttpServer(lambda: True, make_slowly, {}, HttpSettings(request_timeout_ms=_HOUR_MS))
    port = await server.start("127.0.0.1", 0)
    try:
        asking = asyncio.create_task(ask(port, _LAST.replace(b"/livez", b"/metrics")))
        await asyncio.wait_for(asked.wait(), _LIMIT_S)
        assert not times.find_running(_HOUR_S), "the head has come, and the answer may take long"
        answered.set()
        assert b"200 OK" in await asking
    finally:
        await server.stop()


@pytest.mark.parametrize("is_together", [False, True])
async def test_the_next_request_of_a_connection_has_its_time(
    monkeypatch: pytest.MonkeyPatch, is_together: bool
) -> None:
    times = HeadTimes(monkeypatch)
    server, port = await start(HttpSettings(request_timeout_ms=_HOUR_MS))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        half, waits_s = b"GET /livez HT", _KEPT_S if is_together else _HOUR_S
        writer.write(_HEAD + b"\r\n" + (half if is_together else b""))
        kept = await reader.readuntil(b"ok\n")
        assert kept.count(b"200 OK") == 1
        writer.write(b"" if is_together else half)
        await until(lambda: times.find_running(waits_s), f"a timer of {waits_s} s runs", _LIMIT_S)
        times.pass_by(waits_s)
        assert await asyncio.wait_for(_read_to_the_end(reader), _LIMIT_S) == b""
        writer.close()
    finally:
        await server.stop()


async def _read_to_the_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_connections_are_bounded() -> None:
    server, port = await start(HttpSettings(connections_max=2, request_timeout_ms=_HOUR_MS))
    try:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in held:
            writer.write(_HEAD + b"\r\n")
            await asyncio.wait_for(reader.readuntil(b"ok\n"), _LIMIT_S)
            writer.write(b"GET /livez HT")
        assert await ask(port, _LAST) == b""
        held[0][1].close()
        await until_answered(lambda: ask(port, _LAST), lambda answer: b"200 OK" in answer)
        held[1][1].close()
    finally:
        await server.stop()


async def count_accepted(patch: pytest.MonkeyPatch) -> int:
    """The most of many waiting connections that were accepted in one iteration."""
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
    """Bug: uvloop accepted one at a time; a probe waited behind all that a client had opened."""
    uvloop = pytest.importorskip("uvloop")
    assert uvloop.run(count_accepted(monkeypatch)) >= ACCEPTED


async def test_who_has_most_connections_makes_room_for_others() -> None:
    server, port = await start(HttpSettings(connections_max=3, request_timeout_ms=_HOUR_MS))
    try:
        flood = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        other[1].write(_LAST)
        assert b"200 OK" in await asyncio.wait_for(other[0].read(), _LIMIT_S)
        assert await asyncio.wait_for(_read_to_the_end(flood[0][0]), _LIMIT_S) == b"", "the oldest"
        for _, writer in (*flood, other):
            writer.close()
    finally:
        await server.stop()


async def test_a_request_that_is_served_makes_no_room() -> None:
    answered = asyncio.Event()

    async def make_slowly(accept: str) -> tuple[str, Sequence[bytes]]:
        await answered.wait()
        return await make_metrics(accept)

    server = HttpServer(lambda: True, make_slowly, {}, HttpSettings(connections_max=2))
    port = await server.start("127.0.0.1", 0)
    try:
        asking = [
            asyncio.create_task(ask(port, _LAST.replace(b"/livez", b"/metrics"))) for _ in range(2)
        ]
        await until(lambda: len(server_tasks(server)) == 2, "both are served", _LIMIT_S)
        other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        other[1].write(_LAST)
        assert await asyncio.wait_for(_read_to_the_end(other[0]), _LIMIT_S) == b""
        other[1].close()
        answered.set()
        for answer in await asyncio.gather(*asking):
            assert b"200 OK" in answer
    finally:
        await server.stop()


async def test_a_request_of_which_more_is_to_come_makes_room() -> None:
    """Who sends many forms to the console and ends none would keep the probes out."""

    async def read(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()

    settings = HttpSettings(connections_max=2, request_timeout_ms=_HOUR_MS)
    server = HttpServer(lambda: True, make_metrics, {}, settings, console=read)
    port = await server.start("127.0.0.1", 0)
    try:
        flood = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for _, writer in flood:
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na=b")
        await until(lambda: len(server_tasks(server)) == 2, "both are being read", _LIMIT_S)
        other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        other[1].write(_LAST)
        answer = await asyncio.wait_for(_read_to_the_end(other[0]), _LIMIT_S)
        assert b"200 OK" in answer
        for _, writer in (*flood, other):
            writer.close()
    finally:
        await server.stop()


def server_tasks(server: HttpServer) -> set[asyncio.Task[None]]:
    assert server._server is not None
    return server._server.server_state.tasks


async def test_a_client_that_does_not_read_is_dropped() -> None:
    async def make_much(accept: str) -> tuple[str, Sequence[bytes]]:
        return "text/plain", [b"x" * 1_000_000] * 50

    server = HttpServer(lambda: True, make_much, {}, HttpSettings(request_timeout_ms=50))
    port = await server.start("127.0.0.1", 0)
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
        writer.write(_LAST.replace(b"/livez", b"/metrics"))
        await until(lambda: bool(connections(server)), "connected", _LIMIT_S)
        await until(lambda: not connections(server), "dropped", _LIMIT_S)
        writer.close()
    finally:
        await server.stop()


def connections(server: HttpServer) -> set[Any]:
    assert server._server is not None
    return server._server.server_state.connections


@pytest.mark.parametrize(("method", "body"), [(b"GET", b"metrics"), (b"HEAD", b"")])
async def test_parts_are_one_answer_of_a_known_length(method: bytes, body: bytes) -> None:
    server, port = await start(HttpSettings())
    try:
        answer = await ask(port, _LAST.replace(b"GET /livez", method + b" /metrics"))
    finally:
        await server.stop()
    head, _, found = answer.partition(b"\r\n\r\n")
    assert found == body
    assert b"content-length: 7\r\n" in head + b"\r\n"
    assert b"transfer-encoding" not in head


async def test_others_are_served_between_two_parts() -> None:
    turns = began = 0

    async def make_much(accept: str) -> tuple[str, Sequence[bytes]]:
        nonlocal began
        began = turns
        return "text/plain", [b"x"] * MANY

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    server = HttpServer(lambda: True, make_much, {}, HttpSettings())
    port = await server.start("127.0.0.1", 0)
    counting = asyncio.create_task(count())
    try:
        assert (await ask(port, _LAST.replace(b"/livez", b"/metrics"))).endswith(b"x" * MANY)
    finally:
        counting.cancel()
        await server.stop()
    assert turns - began >= MANY


async def test_nobody_says_that_it_is_another_host() -> None:
    """Rights may depend on the host."""
    seen: list[str] = []

    async def note(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])
        await PlainTextResponse("")(scope, receive, send)

    server = HttpServer(lambda: True, make_metrics, {}, HttpSettings(), console=note)
    port = await server.start("127.0.0.1", 0)
    try:
        head = b"Host: x\r\nX-Forwarded-For: 10.9.9.9"
        await ask(port, _LAST.replace(b"/livez", b"/").replace(b"Host: x", head))
        assert seen == ["127.0.0.1"]
    finally:
        await server.stop()
