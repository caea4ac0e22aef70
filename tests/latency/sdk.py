"""Many groups of two members of our own SDK, of which one leaves again and again."""

from __future__ import annotations

import asyncio
import random
import time
from argparse import Namespace
from collections.abc import Callable

import muster
from tests.latency.events import (
    PARTITIONS,
    SHARED_WITHIN_S,
    TAKEN_WITHIN_S,
    WORK_S,
    emit,
    read_arguments,
)


async def poll_until(
    is_done: Callable[[], bool], within_s: float, *members: muster.Member
) -> float | None:
    """Poll until it is so; the seconds, ``None`` where it never was."""
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        for member in members:
            member.poll()
        if is_done():
            return time.monotonic() - began
        await asyncio.sleep(0.01)
    return None


async def run_group(given: Namespace, number: int) -> None:
    group, draw = f"latency-{number}", random.Random(number)
    async with muster.Member(given.bootstrap, group, topics=[given.topic]) as stayer:
        await poll_until(lambda: len(stayer.assignment) == PARTITIONS, SHARED_WITHIN_S, stayer)
        for _ in range(given.rounds):
            await run_round(given, group, stayer, draw)


async def run_round(
    given: Namespace, group: str, stayer: muster.Member, draw: random.Random
) -> None:
    leaver = muster.Member(given.bootstrap, group, topics=[given.topic])
    await leaver.join()

    def is_shared() -> bool:
        return len(stayer.assignment) == len(leaver.assignment) == PARTITIONS // 2

    shared = await poll_until(is_shared, SHARED_WITHIN_S, stayer, leaver)
    await poll_until(lambda: False, draw.uniform(*WORK_S), stayer, leaver)
    closing = asyncio.ensure_future(leaver.close())
    taken = await poll_until(lambda: len(stayer.assignment) == PARTITIONS, TAKEN_WITHIN_S, stayer)
    await closing
    if shared is None:
        emit("late")
    elif taken is None:
        emit("lost")
    else:
        emit("taken", share_ms=shared * 1_000, after_ms=taken * 1_000)


async def main() -> None:
    given = read_arguments()
    await asyncio.gather(*(run_group(given, number) for number in range(given.groups)))


if __name__ == "__main__":
    asyncio.run(main())
