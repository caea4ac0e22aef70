"""Streams of events as an HTTP server sends them: counted while they last, closed when they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from console.refusals import Refused
from console.streams import STREAMS_MAX, EventStreams, compute_host_limit

PEER = "ipv4:127.0.0.1:50000"
EVENT = b"event: change\ndata:\n\n"
WITHIN_S = 10.0


class Events:
    """One event, then none until the stream ends. Ending takes some turns of the event loop."""

    def __init__(self) -> None:
        self.is_closed = False

    async def make(self) -> AsyncGenerator[bytes, None]:
        try:
            yield EVENT
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            self.is_closed = True


class Client:
    """An HTTP server's side of one request, as uvicorn has it."""

    def __init__(self, method: str = "GET") -> None:
        self.scope = {"type": "http", "method": method, "asgi": {"spec_version": "2.3"}}
        self.gone = asyncio.Event()
        self.came = asyncio.Event()
        self.sent: list[bytes] = []

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message.get("body", b""))
        if message["type"] == "http.response.body":
            self.came.set()


async def test_a_stream_that_its_client_closes_is_closed_and_counts_no_more() -> None:
    streams = EventStreams()
    for _ in range(compute_host_limit(STREAMS_MAX) + 1):
        client, events = Client(), Events()
        response = streams.respond(PEER, lambda: True, events.make())
        serving = asyncio.create_task(response(client.scope, client.receive, client.send))
        async with asyncio.timeout(WITHIN_S):
            await client.came.wait()
            client.gone.set()
            await serving
        assert EVENT in client.sent
        assert events.is_closed


async def test_a_server_that_stops_closes_them() -> None:
    client, events = Client(), Events()
    response = EventStreams().respond(PEER, lambda: True, events.make())
    serving = asyncio.create_task(response(client.scope, client.receive, client.send))
    await client.came.wait()
    serving.cancel()
    async with asyncio.timeout(WITHIN_S):
        await asyncio.wait((serving,))
    assert serving.cancelled()
    assert events.is_closed


async def test_of_those_that_come_at_once_not_one_too_many_is_taken() -> None:
    streams, client = EventStreams(), Client()

    async def serve() -> None:
        response = streams.respond(PEER, lambda: True, Events().make())
        await response(client.scope, client.receive, client.send)

    serving = [asyncio.create_task(serve()) for _ in range(compute_host_limit(STREAMS_MAX) + 10)]
    await client.came.wait()
    client.gone.set()
    ended = await asyncio.gather(*serving, return_exceptions=True)
    assert sum(isinstance(each, Refused) for each in ended) == 10


async def test_who_asks_for_the_head_alone_gets_no_stream() -> None:
    client, events = Client("HEAD"), Events()
    response = EventStreams().respond(PEER, lambda: True, events.make())
    async with asyncio.timeout(WITHIN_S):
        await response(client.scope, client.receive, client.send)
    assert not b"".join(client.sent)
