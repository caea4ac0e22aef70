"""Runs assignors, on the loop or on a thread, within the time limit, and reports failures.

Built-in assignors share one thread. A custom assignor gets a thread per run, and nothing waits for
it, because it may never return. A thread cannot be stopped from outside, so a late one runs until
it returns. Only a few custom runs are allowed at a time; if all of them hang, later ones exceed
their time limit too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final

import structlog

from coordinator.core.target.target_assignment import InstallTarget, TargetProblem, compute_install
from coordinator.runtime.clock import Cancellable, Scheduler
from coordinator.runtime.loop.stats import Stats
from muster.assignors.answer import BadAnswer
from muster.assignors.registry import Assignors
from muster.assignors.rules import compute_assignment

log = structlog.get_logger()

MOST_CUSTOM: Final = 8
"""How many custom assignors may run at a time, late ones included."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no assignment. ``reason`` is one of ``Stats.assignor_failures_by_reason``."""

    reason: str
    cause: str


Result = InstallTarget | Failure


class Assignments:
    """Runs the server-side assignors, times them, and reports failures."""

    def __init__(
        self,
        scheduler: Scheduler,
        stats: Stats,
        time_limit_ms: int,
        assignors: Assignors,
    ) -> None:
        self._scheduler = scheduler
        self._stats = stats
        self._time_limit_ms = time_limit_ms
        self._assignors = assignors
        self._running = 0
        self._queue: deque[_Computation] = deque()

    def is_custom(self, name: str) -> bool:
        """Whether the assignor is not built in, or unknown."""
        assignor = self._assignors.get(name)
        return assignor is None or assignor.is_custom

    def is_search(self, name: str) -> bool:
        """Whether the assignor's run time cannot be predicted from the problem size alone."""
        assignor = self._assignors.get(name)
        return assignor is None or assignor.is_search

    def run(self, problem: TargetProblem) -> Result:
        """Compute on the loop."""
        began_s = perf_counter()
        try:
            assignor = self._assignors[problem.assignor]
            found = compute_assignment(assignor, problem.problem, problem.rules)
            return compute_install(problem, found.target, found.moves_left)
        except BadAnswer as error:
            return Failure("junk", str(error))
        except Exception as error:  # noqa: BLE001 - an assignor may fail; the group goes on
            return Failure("raised", repr(error))
        finally:
            self._stats.assignor_seconds.add(perf_counter() - began_s)

    def start(self, problem: TargetProblem, done: Callable[[Result], None]) -> None:
        """Compute on a thread. ``done`` gets the result once, within the time limit."""
        if problem.assignor not in self._assignors:
            cause = "the server has no assignor of that name"
            self._scheduler.call_soon(lambda: done(Failure("missing", cause)))
            return
        computation = _Computation(partial(self.run, problem), done)
        computation.arm(self._scheduler, self._time_limit_ms)
        if not self.is_custom(problem.assignor):
            self._scheduler.run_computing(computation.work, computation.finish)
            return
        self._queue.append(computation)
        self._start_next()

    def _start_next(self) -> None:
        while self._queue and self._running < MOST_CUSTOM:
            computation = self._queue.popleft()
            if not computation.is_late:
                self._running += 1
                self._scheduler.run_apart(computation.work, partial(self._ended, computation))

    def _ended(self, computation: _Computation, result: Result | BaseException) -> None:
        self._running -= 1
        computation.finish(result)
        self._start_next()

    def count(self, failure: Failure) -> None:
        """Count a failure."""
        counts = self._stats.assignor_failures_by_reason
        counts[failure.reason] = counts.get(failure.reason, 0) + 1

    def report(self, problem: TargetProblem, failure: Failure) -> None:
        """Count and log a failure; the current target stays in force."""
        self.count(failure)
        log.error(
            "assignor_failed",
            group_id=problem.group_id,
            assignor=problem.assignor,
            group_epoch=problem.group_epoch,
            reason=failure.reason,
            cause=failure.cause,
        )


class _Computation:
    """One run of an assignor on a thread, with its time limit."""

    def __init__(self, work: Callable[[], Result], done: Callable[[Result], None]) -> None:
        self.is_late = False
        self._work = work
        self._done = done
        self._timer: Cancellable | None = None

    def arm(self, scheduler: Scheduler, time_limit_ms: int) -> None:
        self._timer = scheduler.call_later_ms(time_limit_ms, lambda: self._give_up(time_limit_ms))

    def work(self) -> Result:
        """Run the assignor, unless the time limit passed while it was queued."""
        return Failure("late", "it did not start in time") if self.is_late else self._work()

    def _give_up(self, time_limit_ms: int) -> None:
        self.is_late = True
        self._done(Failure("late", f"no answer within {time_limit_ms} ms"))

    def finish(self, result: Result | BaseException) -> None:
        if self.is_late:
            return
        assert self._timer is not None
        self._timer.cancel()
        if isinstance(result, BaseException):
            result = Failure("raised", repr(result))
        self._done(result)
