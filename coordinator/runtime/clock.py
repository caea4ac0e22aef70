"""Clocks and scheduling for the runtime, backed by asyncio or by the simulator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from coordinator.runtime.loop.sync_pace import SyncPace
from model.now import Now

T = TypeVar("T")

BELIEVED_AHEAD_MS = 3_600_000
GIVE_WAY_EVERY_S = 0.003
GIVE_WAY_S = 0.0001
"""Long enough for a thread that waits for the interpreter lock to wake up and take it."""
UNKNOWN_MS = -1


class Clock(Protocol):
    """Reads the machine's clocks."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may jump."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never goes back."""


class SystemClock:
    """The clocks of this machine."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class SteadyClock:
    """``Now`` for commands: wall time that never goes back and does not leap ahead.

    It never falls below the last persisted timestamp and runs at most one hour ahead of where
    monotonic time puts it: a clock set to 2100 must not expire every offset. If the machine's clock
    stays ahead (monotonic time stands still while the machine sleeps), this clock accepts one more
    hour with every hour that passes. The wall time at process start is accepted as it is.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.found_ms = 0
        """The last timestamp found in the log, 0 if the log was empty."""
        self._persisted_ms = 0
        self._believed_ms = UNKNOWN_MS
        self._believed_at_ms = 0

    def note_found(self, wall_ms: int) -> None:
        """Start from the last timestamp of the log; its age is unknown."""
        self.found_ms = self._persisted_ms = wall_ms
        self._believed_ms = max(self._clock.wall_ms(), wall_ms)
        self._believed_at_ms = self._clock.monotonic_ms()

    def note_persisted(self, wall_ms: int) -> None:
        """Note that a record with this timestamp is in the log."""
        if wall_ms < self._persisted_ms:
            return
        self._persisted_ms = wall_ms
        monotonic_ms = self._clock.monotonic_ms()
        passed_ms = monotonic_ms - self._believed_at_ms
        # A time that was capped is no measure for the next one, unless an hour has passed.
        is_held_back = wall_ms >= self._believed_ms + passed_ms + BELIEVED_AHEAD_MS
        if self._believed_ms < 0 or not is_held_back or passed_ms >= BELIEVED_AHEAD_MS:
            self._believed_ms, self._believed_at_ms = wall_ms, monotonic_ms

    def now(self) -> Now:
        wall_ms, monotonic_ms = self._clock.wall_ms(), self._clock.monotonic_ms()
        if self._believed_ms < 0:
            self._believed_ms = max(wall_ms, self._persisted_ms)
            self._believed_at_ms = monotonic_ms
        passed_ms = monotonic_ms - self._believed_at_ms
        highest_ms = self._believed_ms + passed_ms + BELIEVED_AHEAD_MS
        return Now(max(min(wall_ms, highest_ms), self._persisted_ms), monotonic_ms)

    def wall_ms(self) -> int:
        """The wall time of ``now``, computed cheaply in the common case."""
        wall_ms = self._clock.wall_ms()
        if self._persisted_ms <= wall_ms < self._believed_ms + BELIEVED_AHEAD_MS:
            return wall_ms
        return self.now().wall_ms

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """The event loop of one thread, and work handed to other threads."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call in a later iteration of the loop, after what is ready now."""

    def call_later_ms(self, delay_ms: int, callback: Callable[[], None]) -> Cancellable:
        """Call after ``delay_ms`` of monotonic time."""

    def run_blocking(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        """Run ``work``, which waits for the disk, on a thread, in order.

        ``done`` gets its result or its exception, on the loop.
        """

    @property
    def waits_for_syncs(self) -> bool:
        """Whether ``run_sync`` syncs on the loop itself when it is allowed to."""

    def run_sync(
        self,
        work: Callable[[], None],
        done: Callable[[BaseException | None], None],
        *,
        may_wait: bool,
    ) -> None:
        """``run_blocking`` for a sync of the log.

        Syncs on the loop itself if the disk syncs fast and ``may_wait`` allows it.
        """

    def run_computing(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        """``run_blocking`` on a thread of its own, for long computations."""

    def run_matching(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        """``run_computing`` on a thread of its own, for the regular expressions of groups."""

    def run_apart(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """``run_computing`` on a new thread per call, for work that may never end."""


class Lane:
    """One thread that runs work in order and hands the results back to the loop.

    A plain queue and one call into the loop: an executor would create a future per flush, which
    doubles the cost of the hand-over.

    While work is outstanding, the loop calls ``give_way`` every ``GIVE_WAY_EVERY_S``. A busy loop
    releases the interpreter lock in each system call and takes it back before the thread has woken
    up, and since it releases the lock voluntarily, the interpreter never forces a switch. Without
    ``give_way`` the thread, and every commit with it, would wait until the loop is idle.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        give_way: Callable[[], None] | None = None,
    ) -> None:
        self._loop = loop
        self._give_way = give_way
        self._out = 0
        self._gives_way = False
        self._queue: SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]] | None]
        self._queue = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """Run ``work`` after what was queued before; ``done`` gets its result or its exception."""
        self._queue.put((work, done))
        self._out += 1
        if self._give_way is not None and not self._gives_way:
            self._gives_way = True
            self._loop.call_later(GIVE_WAY_EVERY_S, self._let_it_run)

    def _let_it_run(self) -> None:
        self._gives_way = self._out > 0
        if self._gives_way and self._give_way is not None:
            self._give_way()
            self._loop.call_later(GIVE_WAY_EVERY_S, self._let_it_run)

    def _finish(self, done: Callable[[Any], None], result: object) -> None:
        self._out -= 1
        done(result)

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            try:
                result = work()
            except BaseException as failure:  # noqa: BLE001 - handed to the loop, not swallowed
                result = failure
            self._loop.call_soon_threadsafe(self._finish, done, result)
            # The next get() may block for long; do not keep large objects alive meanwhile.
            del item, work, done, result


def give_way() -> None:
    """Let a thread that waits for the interpreter lock take it."""
    time.sleep(GIVE_WAY_S)


class AsyncioScheduler:
    """Schedules on the running asyncio (or uvloop) loop, with one thread per lane."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._blocking = Lane(loop, "muster-sync", give_way)
        self._computing = Lane(loop, "muster-assignor")
        self._matching = Lane(loop, "muster-regexes")
        self._pace = SyncPace()

    def call_soon(self, callback: Callable[[], None]) -> object:
        return self._loop.call_soon(callback)

    def call_later_ms(self, delay_ms: int, callback: Callable[[], None]) -> Cancellable:
        return self._loop.call_later(delay_ms / 1000, callback)

    def run_blocking(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._blocking.put(work, done)

    @property
    def waits_for_syncs(self) -> bool:
        return self._pace.waits

    def run_sync(
        self,
        work: Callable[[], None],
        done: Callable[[BaseException | None], None],
        *,
        may_wait: bool,
    ) -> None:
        def measure() -> None:
            began_ns = time.perf_counter_ns()
            work()
            # Only one sync runs at a time, so no other thread updates the pace.
            self._pace.note((time.perf_counter_ns() - began_ns) // 1_000)

        if not (may_wait and self._pace.waits):
            self._blocking.put(measure, done)
            return
        try:
            measure()
        except BaseException as failure:  # noqa: BLE001 - handed on, not swallowed
            done(failure)
        else:
            done(None)

    def run_computing(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._computing.put(work, done)

    def run_matching(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._matching.put(work, done)

    def run_apart(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        def run() -> None:
            result: T | BaseException
            try:
                result = work()
            except BaseException as failure:  # noqa: BLE001 - handed to the loop, not swallowed
                result = failure
            with suppress(RuntimeError):  # the loop may have ended before the work
                self._loop.call_soon_threadsafe(done, result)

        Thread(target=run, name="muster-custom-assignor", daemon=True).start()

    def close(self) -> None:
        """Finish the work handed over, then end the threads."""
        self._blocking.close()
        self._computing.close()
        self._matching.close()
