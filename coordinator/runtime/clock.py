"""Time, and the turns of the loop, as the runtime gets them: from asyncio or from a simulator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from coordinator.runtime.loop.sync_pace import SyncPace
from model.commands import Now

T = TypeVar("T")

BELIEVED_AHEAD_MS = 3_600_000
GIVE_WAY_EVERY_S = 0.003
GIVE_WAY_S = 0.0001
"""Long enough for a thread that waits for the interpreter to wake up and take it."""
UNKNOWN_MS = -1


class Clock(Protocol):
    """Reads the clocks of the machine."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may jump."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some start; never goes back."""


class SystemClock:
    """The clocks of this machine."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class SteadyClock:
    """``Now`` for commands: wall time that never goes back and does not leap.

    It never goes below the last persisted time, and is believed at most an hour ahead of where
    monotonic time puts it: a clock set to 2100 must not expire every offset. If it stays ahead,
    as after a sleep of the machine in which monotonic time stood still, it is believed one hour
    more with every hour that passes. The clock that a process starts with is believed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.found_ms = 0
        """The last timestamp in the log that was found, 0 where nothing was."""
        self._persisted_ms = 0
        self._believed_ms = UNKNOWN_MS
        self._believed_at_ms = 0

    def note_found(self, wall_ms: int) -> None:
        """The log that was found ends with this timestamp; how long ago that was nobody knows."""
        self.found_ms = self._persisted_ms = wall_ms
        self._believed_ms = max(self._clock.wall_ms(), wall_ms)
        self._believed_at_ms = self._clock.monotonic_ms()

    def note_persisted(self, wall_ms: int) -> None:
        """A record with this timestamp is in the log."""
        if wall_ms < self._persisted_ms:
            return
        self._persisted_ms = wall_ms
        monotonic_ms = self._clock.monotonic_ms()
        passed_ms = monotonic_ms - self._believed_at_ms
        # A time that had to be held back is no measure of the next, unless an hour has passed.
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
        """The wall time of ``now``, which is mostly that of the machine."""
        wall_ms = self._clock.wall_ms()
        if self._persisted_ms <= wall_ms < self._believed_ms + BELIEVED_AHEAD_MS:
            return wall_ms
        return self.now().wall_ms

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """The turns of one thread, and work handed to others."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call in a later turn, after what is ready now."""

    def call_later_ms(self, delay_ms: int, callback: Callable[[], None]) -> Cancellable:
        """Call when so much monotonic time has passed."""

    def run_blocking(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        """Run ``work`` elsewhere, one after another; ``done`` gets its result or its exception.

        For work that waits for the disk: ``done`` comes in a turn of this thread.
        """

    @property
    def waits_for_syncs(self) -> bool:
        """Whether ``run_sync`` does its work here and now, if it may."""

    def run_sync(
        self,
        work: Callable[[], None],
        done: Callable[[BaseException | None], None],
        *,
        may_wait: bool,
    ) -> None:
        """As ``run_blocking``, for a sync of the log. Where these are brief, and the turns of this
        thread may wait for it, it is done at once."""

    def run_computing(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        """As ``run_blocking``, in a lane of its own, for work that computes for long."""

    def run_matching(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        """As ``run_computing``, in a lane of its own, for the patterns of groups."""

    def run_apart(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """As ``run_computing``, beside everything else, for work that may never end."""


class Lane:
    """One thread that does what it is given, in order, and hands results back to the loop.

    A plain queue and one call into the loop: an executor makes a future for each flush, which
    costs as much again as the rest of the hand-over.

    While work is out, ``give_way`` is called every ``GIVE_WAY_EVERY_S``. A loop that is busy lets
    go of the interpreter in each system call and takes it again before the thread has woken up,
    and whoever lets go by itself is never asked to: the thread would wait for as long as the loop
    has work, and all commits with it.
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
        """Do ``work`` after what was put before; ``done`` gets its result or its exception."""
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
        """Finish what was put, and end."""
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
            # It may wait for long, and must not hold what may be large.
            del item, work, done, result


def give_way() -> None:
    """Let a thread that waits for the interpreter have it."""
    time.sleep(GIVE_WAY_S)


class AsyncioScheduler:
    """Turns of the running asyncio (or uvloop) loop, and a thread for each lane."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._blocking = Lane(loop, "muster-sync", give_way)
        self._computing = Lane(loop, "muster-assignor")
        self._matching = Lane(loop, "muster-patterns")
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
            # One at a time: nobody else has the pace meanwhile.
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
        """Let the threads end; work that was handed over is finished first."""
        self._blocking.close()
        self._computing.close()
        self._matching.close()
