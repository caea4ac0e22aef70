"""An event loop without I/O that counts what each of its turns does.

A step is a line of Python that is run, or a call of a function of Python: what a loop does again it
does in steps again, also within one expression. Work that is handed to threads is done here, at
once and uncounted: it holds no loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop
from types import FrameType
from typing import Any, Final, TypeVar

from tests.support import memory, sorted_map

T = TypeVar("T")

_STORE: Final = (memory.__file__, sorted_map.__file__)
STEPS_PER_MS: Final = 20_000
"""What a busy core of 2026 does, measured without anybody who counts: 18,000 to 37,000 steps of the
code below in a millisecond (``python -m tests.cost.turns`` says what it is here)."""
ATOMIC_STEPS_MAX: Final = 50 * STEPS_PER_MS
"""The longest turn that there may be: of what is one command, and cannot be done in parts."""
TURN_STEPS_MAX: Final = 20 * STEPS_PER_MS
"""A turn of 20 ms, well below the 50 ms that no turn may take: what is done in one call of C, and
counts as a step, takes its time too, and so does a collection of garbage."""


@dataclass(slots=True)
class Counted:
    """The steps of a piece of work: all of them, and those of the longest turn."""

    total: int = 0
    longest: int = 0
    turns: int = 0
    kept: list[Any] = field(default_factory=list)


class Steps:
    """Counts steps while it is on."""

    def __init__(self) -> None:
        self.count = 0

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        # Calls and lines; what returns, and what is raised, was counted when it began.
        if event in ("line", "call"):
            self.count += 1
        # Of the store each call is a step, as of RocksDB, which is not Python.
        return None if frame.f_code.co_filename in _STORE else self._trace

    @contextmanager
    def on(self) -> Iterator[None]:
        """Count what is done within."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)

    def off(self, work: Callable[[], T]) -> T:
        """Do it uncounted."""
        before = sys.gettrace()
        sys.settrace(None)
        try:
            return work()
        finally:
            sys.settrace(before)


class _Selector:
    def select(self, timeout: float | None) -> list[Any]:
        raise AssertionError("the loop runs its own turns")

    def close(self) -> None:
        pass


class CountedLoop(asyncio.BaseEventLoop):
    """asyncio's loop on virtual time; each turn is counted while ``counted`` is set."""

    _ready: Any
    _scheduled: Any

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector()
        self._clock_resolution = 1e-9
        self._now_s = 1_000.0
        self.steps = Steps()
        self.counted: Counted | None = None
        self.failures: list[dict[str, Any]] = []
        self.set_exception_handler(lambda loop, context: self.failures.append(context))

    def time(self) -> float:
        return self._now_s

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()

        def work() -> None:
            try:
                future.set_result(self.steps.off(lambda: func(*args)))
            except Exception as error:  # noqa: BLE001 - handed on as an executor does
                future.set_exception(error)

        self.call_soon(work)
        return future

    # --------------------------------------------------------------------------------- turns

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        if not ready:
            while scheduled and scheduled[0].cancelled():
                heappop(scheduled)._scheduled = False
            assert scheduled, "everybody waits, and nothing is to come"
            self._now_s = max(scheduled[0]._when, self._now_s)
        while scheduled and scheduled[0]._when <= self._now_s + self._clock_resolution:
            timer = heappop(scheduled)
            timer._scheduled = False
            ready.append(timer)
        handles = [ready.popleft() for _ in range(len(ready))]
        if self.counted is None:
            _run(handles)
            return
        begun = self.steps.count
        with self.steps.on():
            _run(handles)
        took = self.steps.count - begun
        self.counted.turns += 1
        self.counted.total += took
        self.counted.longest = max(self.counted.longest, took)

    def run_while(self, condition: Callable[[], bool]) -> None:
        """Turns until it does not hold any more."""
        asyncio._set_running_loop(self)
        try:
            while condition():
                self._run_once()
                assert not self.failures, self.failures
        finally:
            asyncio._set_running_loop(None)

    def run_for(self, duration_s: float) -> None:
        """All turns of the next so many seconds."""
        end_s = self._now_s + duration_s
        self.call_at(end_s, lambda: None)
        self.run_while(lambda: self._now_s < end_s or bool(self._ready))

    def complete(self, coroutine: Any) -> Any:
        """What it comes to."""
        asyncio._set_running_loop(self)
        task = self.create_task(coroutine)
        self.run_while(lambda: not task.done())
        return task.result()

    def count(self, begin: Callable[[], object], is_done: Callable[[], bool]) -> Counted:
        """What it costs from ``begin``, which is a turn, until it is done."""
        counted = Counted()
        self.call_soon(begin)
        self.counted = counted
        try:
            self._run_once_more(counted)
            self.run_while(lambda: not is_done())
        finally:
            self.counted = None
        return counted

    def _run_once_more(self, counted: Counted) -> None:
        asyncio._set_running_loop(self)
        try:
            self._run_once()
        finally:
            asyncio._set_running_loop(None)


def _run(handles: list[Any]) -> None:
    for handle in handles:
        if not handle.cancelled():
            handle._run()


class LoopScheduler:
    """``coordinator.runtime.clock.Scheduler`` on such a loop; other threads' work is uncounted."""

    waits_for_syncs = False

    def __init__(self, loop: CountedLoop) -> None:
        self._loop = loop

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1_000)

    def call_soon(self, callback: Callable[[], None]) -> object:
        return self._loop.call_soon(callback)

    def call_later_ms(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        return self._loop.call_later(delay_ms / 1_000, callback)

    def run_blocking(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def run() -> None:
            result: Any
            try:
                result = self._loop.steps.off(work)
            except Exception as failure:  # noqa: BLE001 - handed to ``done`` as the seam says
                result = failure
            done(result)

        self._loop.call_soon(run)

    run_computing = run_matching = run_apart = run_blocking

    def run_sync(
        self, work: Callable[[], None], done: Callable[[Any], None], *, may_wait: bool
    ) -> None:
        self.run_blocking(work, done)


# ------------------------------------------------------------------------------------------ laws


def check_law(
    measure: Callable[[int], Counted], n: int, limit: int, most: int = TURN_STEPS_MAX
) -> tuple[Counted, ...]:
    """At n, 2n and 4n elements steps grow as they do, and no turn with them.

    ``limit`` is how many there may be at most: what a turn grows by from 2n to 4n, though it be one
    step for each, it grows by up to there.
    """
    measure(n // 4)  # What is compiled once, and kept, is no part of it.
    small, middle, large = (measure(size) for size in (n, 2 * n, 4 * n))
    told = f"n = {n}: {small}, {middle}, {large}"
    # Twice and twice again, and what slices make that fewer need not.
    assert large.total <= 5 * small.total + 5_000, told
    growth = max(large.longest - small.longest, 0) / (3 * n)
    at_most = large.longest + growth * max(limit - 4 * n, 0)
    assert at_most <= most, f"{at_most:.0f} steps in a turn of {limit}; {told}"
    return small, middle, large
