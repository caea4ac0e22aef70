"""How much of a time the machine was starved of processors: what no bound in seconds can hold."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

_TICK_S = 0.02
_LATE_MS = 20.0


class Starvation:
    """A thread that wants to run every 20 ms, and notes by how much it came too late.

    What it waited for a processor every process of the machine may have waited for, and a chain of
    processes that wait for each other that much several times.
    """

    def __init__(self) -> None:
        self._late: list[tuple[float, float]] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        before = time.time()
        while not self._ending.wait(_TICK_S):
            now = time.time()
            late_ms = (now - before - _TICK_S) * 1_000
            if late_ms > _LATE_MS:
                self._late.append((now * 1_000, late_ms))
            before = now

    def compute_ms(self, begin_ms: float, end_ms: float) -> float:
        """How late it was in all, between two moments of wall-clock time."""
        return sum(late_ms for at_ms, late_ms in self._late if begin_ms <= at_ms <= end_ms)
