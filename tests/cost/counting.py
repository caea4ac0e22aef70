"""Counts what a piece of work does: calls of functions of Python and of C, and what it makes.

What copies something large in one call of C is not seen as calls. So what was made in it is
counted as well, in bytes, also what is gone again at once.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

FACTOR_MAX: Final = 2.4
"""By so much a doubling may grow: twice, and what hash tables add."""


@dataclass(frozen=True, slots=True)
class Cost:
    calls: int
    peak_bytes: int


def count(work: Callable[[], Any]) -> Cost:
    """What ``work`` costs."""
    calls = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    gc.collect()
    tracemalloc.start()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return Cost(calls, peak)


def check_linear(prepare: Callable[[int], Callable[[], Any]], n: int) -> None:
    """``prepare(n)`` makes a piece of work of size n: at 4n it costs not much more than 4 times.

    Where it is done in slices, or tables grow, one doubling may be more, and another less.
    """
    # What is loaded and kept at the first time is no part of it.
    prepare(4 * n)()
    costs = [count(prepare(size)) for size in (n, 2 * n, 4 * n)]
    small, _, large = costs
    # What does not grow is no part of it: some constant calls.
    assert large.calls <= FACTOR_MAX**2 * small.calls + 100, costs
    assert large.peak_bytes <= FACTOR_MAX**2 * small.peak_bytes + 65_536, costs
