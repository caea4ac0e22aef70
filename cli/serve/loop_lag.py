"""Measures the lag of the event loop: what blocks the loop delays every client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from coordinator.runtime.loop.stats import Histogram

INTERVAL_S = 1.0
"""Long, so that an idle server stays idle."""
IDLE_S = 0.005
"""A loop that runs a timer no later has little to do; an idle one is late by 1 to 3 ms."""


class LoopLag:
    """Sets a timer periodically and records how late it fires.

    ``on_idle`` is called when it fires in time.
    """

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self.histogram = Histogram()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start on the running loop."""
        loop = asyncio.get_running_loop()
        self._arm(loop)

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + INTERVAL_S

        def on_timer() -> None:
            late_s = max(0.0, loop.time() - due)
            self.histogram.add(late_s)
            if late_s <= IDLE_S:
                self._on_idle()
            self._arm(loop)

        self._timer = loop.call_at(due, on_timer)
