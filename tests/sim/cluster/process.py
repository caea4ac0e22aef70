"""One server process: its turns on virtual time, until it dies, and its stalls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tests.support.virtual.disk import SimDisk
from tests.support.virtual.scheduler import VirtualScheduler

T = TypeVar("T")


class Call:
    """A call to come, in a process."""

    __slots__ = ("callback", "is_cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ServerProcess:
    """``Scheduler`` and ``Clock`` of one process; each turn is one step of the world's time.

    A dead process takes no turn. One that stands still (SIGSTOP, a pause of the machine) takes its
    turns when that is over, in their order; its clocks went on.
    """

    def __init__(
        self,
        time: VirtualScheduler,
        blocking_ms: Callable[[], int],
        computing_ms: Callable[[], int],
    ) -> None:
        self._time = time
        self._blocking_ms = blocking_ms
        self._computing_ms = computing_ms
        self._lane_free_at_ms = {"blocking": 0, "computing": 0, "matching": 0}
        self.is_dead = False
        self._stalls = 0
        self._deferred: list[Call] = []

    def stall(self, duration_ms: int) -> None:
        """Stand still for so long; what would have happened meanwhile follows, in its order."""
        self._stalls += 1
        self._time.call_later_ms(duration_ms, self._resume)

    def _resume(self) -> None:
        self._stalls -= 1
        if not self._stalls:
            deferred, self._deferred = self._deferred, []
            for call in deferred:
                self._time.call_later_ms(0, partial(self._run, call))

    @property
    def is_stalled(self) -> bool:
        return self._stalls > 0

    def wall_ms(self) -> int:
        return self._time.wall_ms()

    def monotonic_ms(self) -> int:
        return self._time.now_ms

    def call_soon(self, callback: Callable[[], None]) -> Call:
        return self.call_later_ms(0, callback)

    def call_later_ms(self, delay_ms: int, callback: Callable[[], None]) -> Call:
        call = Call(callback)
        self._time.call_later_ms(delay_ms, partial(self._run, call))
        return call

    def _run(self, call: Call) -> None:
        if self.is_dead or call.is_cancelled:
            return
        if self._stalls:
            self._deferred.append(call)
        else:
            call.callback()

    def run_blocking(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run_in_lane("blocking", self._blocking_ms(), work, done)

    @property
    def waits_for_syncs(self) -> bool:
        return False

    def run_sync(
        self,
        work: Callable[[], None],
        done: Callable[[BaseException | None], None],
        *,
        may_wait: bool,
    ) -> None:
        owner = getattr(work, "__self__", None)
        if isinstance(owner, SimDisk):
            owner.begin_sync()
        self.run_blocking(work, done)

    def run_computing(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run_in_lane("computing", self._computing_ms(), work, done)

    def run_matching(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run_in_lane("matching", self._computing_ms(), work, done)

    def run_apart(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        self.run_computing(work, done)

    def _run_in_lane(
        self,
        lane: str,
        takes_ms: int,
        work: Callable[[], T],
        done: Callable[[T | BaseException], None],
    ) -> None:
        now_ms = self._time.now_ms
        ends_ms = max(self._lane_free_at_ms[lane], now_ms) + takes_ms
        self._lane_free_at_ms[lane] = ends_ms

        def finish() -> None:
            result: T | BaseException
            try:
                result = work()
            except Exception as failure:  # noqa: BLE001 - handed to ``done`` as the seam says
                result = failure
            # The loop hears of it in a turn of its own: a crash may come between.
            self.call_soon(lambda: done(result))

        self.call_later_ms(ends_ms - now_ms, finish)
