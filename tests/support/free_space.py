"""A disk whose free space the test sets."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.runtime.loop.write_space import CHECK_MS
from coordinator.runtime.runtime import Runtime


def set_free_space(runtime: Runtime, free_bytes: Callable[[], int], min_free_bytes: int) -> None:
    """Set the free space that the next check of the disk reads."""
    space = runtime._around.space
    space._free_bytes = free_bytes
    space._min_free_bytes = min_free_bytes
    space._checked_ms = -CHECK_MS
