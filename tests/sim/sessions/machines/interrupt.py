"""Cancelling what an application awaits, at any await: in a while, or some turns after a frame."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from tests.sim.sessions.verdicts import check

T = TypeVar("T")
_TURNS_MAX = 12
_FRAMES_MAX = 4


class Interrupted(Exception):
    """The application gave it up."""


async def interrupt(
    awaitable: Awaitable[T],
    random: Random,
    longest_s: float,
    watch_frames: Callable[[Callable[[], None]], None],
) -> T:
    """Awaits it in a task of its own, which is cancelled at a random moment.

    Half of these come so many turns of the loop after a frame has reached the machine: all that
    happens in one go happens at one time, and in the middle of it is where a cancellation hurts.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(awaitable)
    timer: asyncio.TimerHandle | None = None
    if random.random() < 0.4:
        timer = loop.call_later(random.uniform(0.0, longest_s), task.cancel)
    else:
        frames, turns = random.randint(1, _FRAMES_MAX), random.randint(0, _TURNS_MAX)
        left = [frames]

        def cancel_in(turns: int) -> None:
            if turns:
                loop.call_soon(cancel_in, turns - 1)
            else:
                task.cancel()

        def on_frame() -> None:
            left[0] -= 1
            if left[0] == 0:
                cancel_in(turns)

        watch_frames(on_frame)
        timer = loop.call_later(longest_s, task.cancel)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        ours = asyncio.current_task()
        if ours is None or not ours.cancelling():
            raise Interrupted from None
        task.cancel()
        await asyncio.wait((task,))
        raise
    finally:
        timer.cancel()


async def uncancelled(what: str, awaitable: Awaitable[T]) -> T:
    """What nobody cancels does not end as if somebody had."""
    try:
        return await awaitable
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        check(False, "cancelled", f"{what} raised CancelledError, and nobody cancelled")
        raise Interrupted from None
