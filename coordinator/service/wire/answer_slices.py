"""Long answers over gRPC, made in slices between which the loop runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from coordinator.runtime.loop.slices import Steps

S = TypeVar("S")
T = TypeVar("T")

SLICE = 500
"""So many members or offsets are encoded in one turn, each in up to 20 µs."""


async def run_steps(steps: Steps[T]) -> T:
    """What ``steps`` come to, each slice in a turn of its own."""
    # Not work of ``Slices``: it is a task, and ends with its call where the client cancels that.
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)


def make_rows(
    add: Callable[[list[T]], object], make: Callable[[S], T], rows: Iterable[S]
) -> Steps[None]:
    """Give ``add`` what ``make`` makes of each row."""
    left = iter(rows)
    while taken := list(islice(left, SLICE)):
        add([make(row) for row in taken])
        if len(taken) == SLICE:
            yield
