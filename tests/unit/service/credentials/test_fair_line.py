"""Whose turn it is."""

from __future__ import annotations

import asyncio

import pytest

from coordinator.service.credentials.fair_line import (
    WAITING_MAX,
    WAITING_OF_CONNECTION_MAX,
    WAITING_OF_HOST_MAX,
    FairLine,
    LineTooLong,
    WaitingCounts,
)


async def test_hosts_and_their_connections_take_turns() -> None:
    line = FairLine(1)
    await line.enter("held", "held")
    order: list[str] = []

    async def wait(host: str, connection: str) -> None:
        await line.enter(host, connection)
        order.append(connection)
        line.leave()

    waiting = [
        asyncio.create_task(wait(connection[0], connection))
        for connection in ("a1", "a1", "a1", "a2", "b1", "b1")
    ]
    await asyncio.sleep(0)
    line.leave()
    await asyncio.gather(*waiting)
    assert order == ["a1", "b1", "a2", "b1", "a1", "a1"]


async def test_who_gives_up_leaves_no_gap() -> None:
    line = FairLine(1)
    await line.enter("a", "a")
    gone = asyncio.create_task(line.enter("a", "a"))
    served = asyncio.create_task(line.enter("a", "a"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    line.leave()
    await served
    line.leave()
    await line.enter("b", "b")


async def test_who_gives_up_with_its_turn_passes_it_on() -> None:
    line = FairLine(1)
    await line.enter("a", "a")
    gone = asyncio.create_task(line.enter("a", "a"))
    await asyncio.sleep(0)
    line.leave()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    async with asyncio.timeout(10):
        await line.enter("b", "b")


@pytest.mark.parametrize(
    ("most", "connections", "hosts"),
    [
        (WAITING_OF_CONNECTION_MAX, 1, 1),
        (WAITING_OF_HOST_MAX, 1_000, 1),
        (WAITING_MAX, 10_000, 1_000),
    ],
)
def test_each_number_is_bounded(most: int, connections: int, hosts: int) -> None:
    counts = WaitingCounts()
    held = []
    for number in range(most):
        one = counts.counted(str(number % hosts), str(number % connections))
        one.__enter__()
        held.append(one)
    with pytest.raises(LineTooLong), counts.counted("0", "0"):
        pass
    for one in held:
        one.__exit__(None, None, None)
    with counts.counted("0", "0"):
        pass
    assert not counts._of_host
    assert not counts._of_connection
