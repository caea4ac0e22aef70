"""Waiting for what has no event, and for times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from time import monotonic_ns
from typing import Final

_NS: Final = 1_000_000_000


async def poll_until(condition: Callable[[], object], every_s: float) -> None:
    """Look every ``every_s`` seconds until the condition is true."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(every_s)


async def tick(
    rate: float, start_ns: int, find_end_ns: Callable[[], int], every_s: float
) -> AsyncIterator[None]:
    """Tick ``rate`` times a second, by the clock and not by answers; the end may be moved."""
    ticks = 0
    while monotonic_ns() < find_end_ns():
        while monotonic_ns() >= start_ns + int((ticks + 1) / rate * _NS):
            ticks += 1
            yield
        await asyncio.sleep(every_s)
