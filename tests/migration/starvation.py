"""How long processes waited for a processor: what no bound in seconds can hold."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_TICK_S: Final = 0.05
_PRESSURE: Final = Path("/proc/pressure/cpu")


class Starvation:
    """A thread that looks every 50 ms for how long some process has waited for a processor.

    Linux counts that (PSI). What it does not count, a machine that stood still as a whole, is what
    the thread itself came too late; a chain of processes that wait for each other may have waited
    several times as long.
    """

    def __init__(self) -> None:
        self._waited_ms: list[tuple[float, float, float]] = []
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
        late_ms, before = 0.0, time.time()
        while not self._ending.wait(_TICK_S):
            now = time.time()
            late_ms += max(0.0, now - before - _TICK_S) * 1_000
            before = now
            self._waited_ms.append((now * 1_000, late_ms, _read_pressure_ms()))

    def compute_ms(self, begin_ms: float, end_ms: float) -> float:
        """For how long between two moments of wall-clock time, to within two looks."""
        within = [
            waited_ms
            for at_ms, *waited_ms in self._waited_ms
            if begin_ms - _TICK_S * 1_000 <= at_ms <= end_ms + _TICK_S * 1_000
        ]
        if not within:
            return 0.0
        waited_ms = max(last - first for first, last in zip(within[0], within[-1], strict=True))
        return min(waited_ms, end_ms - begin_ms)


def _read_pressure_ms() -> float:
    """Since the machine started; 0 where it is not counted."""
    try:
        some = _PRESSURE.read_text().splitlines()[0]
    except (OSError, IndexError):
        return 0.0
    return int(some.rpartition("=")[2]) / 1_000
