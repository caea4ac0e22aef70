"""Virtual time: a clock and an event loop driven by the test."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LANES = ("blocking", "computing", "matching")
START_WALL_MS = 1_700_000_000_000


class Timer:
    """A scheduled call."""

    __slots__ = ("callback", "is_cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class VirtualScheduler:
    """``Scheduler`` and ``Clock`` in one; it runs only in ``run_*``.

    ``blocking_ms`` and ``computing_ms`` say how long handed-over work takes. Each lane runs work in
    order, and does it at its end.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.wall_offset_ms = START_WALL_MS
        self.wall_stands_at_ms: int | None = None
        self.blocking_ms: Callable[[], int] = lambda: 0
        self.computing_ms: Callable[[], int] = lambda: 0
        self.waits_for_syncs = False
        self._ready: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[int, int, Timer]] = []
        self._sequence = 0
        self._lane_free_at_ms = dict.fromkeys(LANES, 0)

    # ------------------------------------------------------------------------ Clock, Scheduler

    def wall_ms(self) -> int:
        stands_at_ms = self.wall_stands_at_ms
        return self.now_ms + self.wall_offset_ms if stands_at_ms is None else stands_at_ms

    def freeze_wall(self, duration_ms: int) -> None:
        """Stop the wall clock for this long, then let it jump to the right time."""
        if self.wall_stands_at_ms is None:
            self.wall_stands_at_ms = self.wall_ms()
            self.call_later_ms(duration_ms, self._thaw_wall)

    def _thaw_wall(self) -> None:
        self.wall_stands_at_ms = None

    def monotonic_ms(self) -> int:
        return self.now_ms

    def call_soon(self, callback: Callable[[], None]) -> object:
        self._ready.append(callback)
        return None

    def call_later_ms(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        self._sequence += 1
        heapq.heappush(self._timers, (self.now_ms + max(delay_ms, 0), self._sequence, timer))
        return timer

    def run_blocking(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run_in_lane("blocking", self.blocking_ms(), work, done)

    def run_sync(
        self,
        work: Callable[[], None],
        done: Callable[[BaseException | None], None],
        *,
        may_wait: bool,
    ) -> None:
        if not (may_wait and self.waits_for_syncs):
            self.run_blocking(work, done)
            return
        result: BaseException | None = None
        try:
            work()
        except Exception as failure:  # noqa: BLE001 - handed to ``done`` as the seam says
            result = failure
        done(result)

    def run_computing(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run_in_lane("computing", self.computing_ms(), work, done)

    def run_matching(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run_in_lane("matching", self.computing_ms(), work, done)

    def run_apart(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        self.run_computing(work, done)

    def _run_in_lane(
        self,
        lane: str,
        takes_ms: int,
        work: Callable[[], T],
        done: Callable[[T | BaseException], None],
    ) -> None:
        ends_ms = max(self._lane_free_at_ms[lane], self.now_ms) + takes_ms
        self._lane_free_at_ms[lane] = ends_ms

        def finish() -> None:
            result: T | BaseException
            try:
                result = work()
            except Exception as failure:  # noqa: BLE001 - handed to ``done`` as the seam says
                result = failure
            done(result)

        self.call_later_ms(ends_ms - self.now_ms, finish)

    # -------------------------------------------------------------------------------- running

    def step(self) -> bool:
        """Run one iteration: what is ready, else the next timer. ``False`` if neither exists."""
        if self._ready:
            for _ in range(len(self._ready)):
                self._ready.popleft()()
            return True
        while self._timers:
            at_ms, _, timer = heapq.heappop(self._timers)
            if not timer.is_cancelled:
                self.now_ms = max(self.now_ms, at_ms)
                timer.callback()
                return True
        return False

    def take_turn(self, duration_ms: int) -> None:
        """Run one iteration as in a real loop, due timers last; it takes ``duration_ms``."""
        while self._timers and self._timers[0][0] <= self.now_ms:
            timer = heapq.heappop(self._timers)[2]
            if not timer.is_cancelled:
                self._ready.append(timer.callback)
        for _ in range(len(self._ready)):
            self._ready.popleft()()
        self.now_ms += duration_ms

    def next_event_ms(self) -> int | None:
        """When the next iteration is due; now if something is ready."""
        if self._ready:
            return self.now_ms
        while self._timers and self._timers[0][2].is_cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def run_until(self, end_ms: int) -> None:
        """Run all iterations due up to that time, and advance to it."""
        while (at_ms := self.next_event_ms()) is not None and at_ms <= end_ms:
            self.step()
        self.now_ms = max(self.now_ms, end_ms)

    def run_for(self, duration_ms: int) -> None:
        """Run all iterations of the next milliseconds."""
        self.run_until(self.now_ms + duration_ms)

    def drop_all(self) -> None:
        """Drop all scheduled calls: the process has died."""
        self._ready.clear()
        self._timers.clear()
        self._lane_free_at_ms = dict.fromkeys(LANES, 0)
