"""Disk space: with less than ``log.min.free.bytes`` free, nothing is written.

The same holds if the free space is unknown: a data folder that was renamed or deleted accepts
writes as long as its files are open, and loses them.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from coordinator.runtime.loop.stats import Stats
from model.errors import CoordinatorNotAvailable

log = structlog.get_logger()

CHECK_MS = 1_000


class Space:
    """Checks the disk at most once a second. Without ``free_bytes`` there is always space."""

    def __init__(self, free_bytes: Callable[[], int] | None, min_free_bytes: int) -> None:
        self._free_bytes = free_bytes
        self._min_free_bytes = min_free_bytes
        self._checked_ms = -CHECK_MS
        self._is_low = False

    def check(self, monotonic_ms: int, stats: Stats) -> None:
        """Raise ``CoordinatorNotAvailable``, and count it, if the disk is too full to write."""
        if self.is_low(monotonic_ms):
            stats.writes_refused += 1
            raise CoordinatorNotAvailable(
                "The coordinator cannot write: its disk is almost full, or its data folder is gone."
            )

    def is_low(self, monotonic_ms: int) -> bool:
        """Whether there is too little space to write, or the free space is unknown."""
        if monotonic_ms - self._checked_ms >= CHECK_MS and self._free_bytes is not None:
            self._checked_ms = monotonic_ms
            try:
                is_low, cause = self._free_bytes() < self._min_free_bytes, None
            except OSError as error:
                is_low, cause = True, str(error)
            if is_low != self._is_low:
                self._is_low = is_low
                log.warning("disk_space", low=is_low, cause=cause)
        return self._is_low
