"""How many waiting connections an event-loop iteration accepts."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any

import pytest

from gateway.connection.listener import ACCEPTED, listen

MANY = 200


async def count_accepted() -> int:
    """The most connections accepted in one iteration, while many wait."""
    turn, accepted = 0, Counter[int]()

    class Noting(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            accepted[turn] += 1

    listener = await listen(Noting, "127.0.0.1", 0, MANY)
    port = listener.port
    lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(MANY)]
    async with asyncio.timeout(30):
        while accepted.total() < MANY:
            turn += 1
            await asyncio.sleep(0)
    for line in lines:
        line.close()
    listener.close()
    async with asyncio.timeout(30):
        await listener.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    return max(accepted.values())


def test_several_are_accepted_in_a_turn() -> None:
    """Bug: uvloop accepted one; under a flood new clients waited seconds to connect."""
    uvloop = pytest.importorskip("uvloop")
    assert uvloop.run(count_accepted()) >= ACCEPTED


def test_asyncios_own_loop_accepts_all_that_wait() -> None:
    assert asyncio.run(count_accepted()) >= ACCEPTED
