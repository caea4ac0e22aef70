"""Ticks by the clock."""

from __future__ import annotations

import asyncio
from time import monotonic_ns

from cli.load.processes.polling import tick

SECOND = 1_000_000_000


async def test_more_ticks_than_can_be_done_leave_the_loop_its_turns_and_end() -> None:
    """Bug: a churn that the machine cannot do blocked the loop, past the end and for ever."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    start_ns = monotonic_ns()
    ticks = 0
    async for _ in tick(1e12, start_ns, lambda: start_ns + SECOND // 10, 0.01):
        ticks += 1
    counting.cancel()
    assert ticks > 0
    assert turns > 0


async def test_ticks_are_as_many_as_the_rate_says() -> None:
    start_ns = monotonic_ns()
    end_ns = start_ns + SECOND // 2
    ticks = [monotonic_ns() async for _ in tick(100, start_ns, lambda: end_ns, 0.001)]
    assert 0 < len(ticks) <= 50
