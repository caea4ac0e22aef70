"""Encoding of long gRPC responses in time slices, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from coordinator.runtime.loop.slices import Steps

S = TypeVar("S")
T = TypeVar("T")

SLICE = 500
"""Members or offsets encoded in one event-loop iteration, at up to 20 µs each."""


async def run_steps(steps: Steps[T]) -> T:
    """Run ``steps``, one slice per event-loop iteration, and return their result."""
    # Not work of ``Slices``: it is a task, and ends with its call when the client cancels that.
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)


class WorkClock:
    """Tells how long slices took, without what the event loop did between them."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0

    def measure(self, steps: Steps[T]) -> Steps[T]:
        """The same steps."""
        while True:
            began_s = time.perf_counter()
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.seconds += time.perf_counter() - began_s
            yield


def make_rows(
    add: Callable[[list[T]], object],
    make: Callable[[S], T],
    rows: Iterable[S],
    weigh: Callable[[S], int] | None = None,
) -> Steps[None]:
    """Apply ``make`` to the rows and pass the results to ``add``, one slice at a time.

    ``weigh`` says for how many rows one counts; without it, for one.
    """
    taken: list[T] = []
    left = SLICE
    for row in rows:
        taken.append(make(row))
        left -= 1 if weigh is None else weigh(row)
        if left <= 0:
            add(taken)
            taken, left = [], SLICE
            yield
    if taken:
        add(taken)
