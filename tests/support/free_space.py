"""A disk with as much room as a test says."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.runtime.loop.write_space import CHECK_MS
from coordinator.runtime.runtime import Runtime


def set_free_space(runtime: Runtime, free_bytes: Callable[[], int], min_free_bytes: int) -> None:
    """From now on the disk says this; it is looked at the next time that anybody asks."""
    space = runtime._around.space
    space._free_bytes = free_bytes
    space._min_free_bytes = min_free_bytes
    space._checked_ms = -CHECK_MS
