"""Waiting for what has no event, and for times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from time import monotonic_ns
from typing import Final

_NS: Final = 1_000_000_000
_TICKS_MAX: Final = 10
"""In one iteration of the loop."""


async def poll_until(condition: Callable[[], object], every_s: float) -> None:
    """Look every ``every_s`` seconds until the condition is true."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(every_s)


async def tick(
    rate: float, start_ns: int, find_end_ns: Callable[[], int], every_s: float
) -> AsyncIterator[None]:
    """Tick ``rate`` times a second, by the clock and not by answers; the end may be moved.

    If the work of a tick takes longer, there are fewer, and the loop still has its turns.
    """
    ticks = 0
    while (now_ns := monotonic_ns()) < find_end_ns():
        due = int((now_ns - start_ns) / _NS * rate) - ticks
        for _ in range(min(due, _TICKS_MAX)):
            ticks += 1
            yield
        await asyncio.sleep(0 if due > _TICKS_MAX else every_s)
