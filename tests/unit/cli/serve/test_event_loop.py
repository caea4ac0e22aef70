"""The server's event loop takes all events of gRPC's poller in one iteration."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import grpc.aio
import pytest
import uvloop

from cli.serve.event_loop import make_loop, take_all_wakes

CALLS = 1_000
_METHOD = "/test.Echo/Call"


def test_all_bytes_but_one_are_taken_before_the_events() -> None:
    reader, writer = socket.socketpair()
    left = []
    with reader, writer:
        reader.setblocking(False)
        for count in (1, 2, 200):
            for _ in range(count):
                writer.send(b"1")
            take_all_wakes(reader, lambda: left.append(len(reader.recv(1 << 16))))
    assert left == [1, 1, 1]


class _Echo:
    """Answers all waiting calls at once, and counts the iterations in which they are sent."""

    def __init__(self) -> None:
        self.have_come = asyncio.Event()
        self._gate = asyncio.Event()
        self._waiting = 0
        self._left = CALLS
        self._sent = asyncio.Event()

    async def call(self, request: bytes, context: Any) -> bytes:
        context.add_done_callback(self._on_done)
        self._waiting += 1
        if self._waiting == CALLS:
            self.have_come.set()
        await self._gate.wait()
        return request

    def _on_done(self, call: object) -> None:
        self._left -= 1
        if not self._left:
            self._sent.set()

    async def count_turns(self) -> int:
        self._gate.set()
        turns = 0
        while not self._sent.is_set():
            turns += 1
            # What the poller has to say of so many fills the pair.
            time.sleep(0.2 if turns < 4 else 0.0001)  # noqa: ASYNC251 - a turn that takes long
            await asyncio.sleep(0)
        return turns


async def _count_turns() -> int:
    echo = _Echo()
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(echo.call)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("test.Echo", {"Call": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    # A channel with threads of its own: one of asyncio would share the server's poller.
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(_METHOD)
        futures = [call.future(b"x") for _ in range(CALLS)]
        await echo.have_come.wait()
        turns = await echo.count_turns()
        for future in futures:
            assert await asyncio.to_thread(future.result, 10) == b"x"
    await server.stop(None)
    return turns


@pytest.mark.parametrize(
    "kind", [uvloop.Loop, asyncio.SelectorEventLoop], ids=["uvloop", "asyncio"]
)
def test_events_do_not_wait_for_a_turn_each(kind: Any) -> None:
    loop = make_loop(kind)
    try:
        assert loop.run_until_complete(_count_turns()) < CALLS // 10
    finally:
        loop.close()
