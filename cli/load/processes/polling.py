"""Waiting for what has no event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def poll_until(condition: Callable[[], object], every_s: float) -> None:
    """Look every ``every_s`` seconds until the condition is true."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(every_s)
