"""Computing targets: in the flush where it is quick, in a thread where it is not.

One computation is in flight a group. The target in force stays so until a new one is installed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import structlog

from assignors.registry import ASSIGNORS
from coordinator.core.target import InstallTarget, TargetProblem
from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.stats import Stats
from model.ids import GroupId

log = structlog.get_logger()

ALWAYS_INLINE_SIZE = 20_000
"""Members and partitions of a problem that is quick whatever a cold or busy machine measured."""

ALWAYS_INLINE_SIZE_MIXED = 2_000
"""The same where members subscribe to different topics, which is a search."""

INLINE_SIZE = 300_000
"""The same for a problem that was never timed."""


class Targets:
    """Which groups need a target, and the work on it.

    ``compute_problem`` gives the problem of a group now, or ``None`` where it needs no target
    (any more). ``install`` takes the answer; ``request_flush`` asks for a turn that calls
    ``compute_due``.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        inline_budget_ms: int,
        *,
        compute_problem: Callable[[GroupId], TargetProblem | None],
        install: Callable[[InstallTarget], None],
        request_flush: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._stats = stats
        self._inline_budget_ms = inline_budget_ms
        self._compute_problem = compute_problem
        self._install = install
        self._request_flush = request_flush
        self._marked: dict[GroupId, None] = {}
        self._later: set[GroupId] = set()
        self._in_flight: set[GroupId] = set()
        self._last_ms: dict[GroupId, float] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """Install nothing any more: the store is about to be closed."""
        self._is_stopped = True

    @property
    def in_flight(self) -> int:
        """How many computations run in the thread."""
        return len(self._in_flight)

    def mark(self, group_id: GroupId, not_before_ms: int) -> None:
        """The group needs a target; not before that wall time (KIP-1263)."""
        wait_ms = not_before_ms - self._clock.now().wall_ms
        if wait_ms <= 0:
            self._marked[group_id] = None
            self._request_flush()
        elif group_id not in self._later:
            self._later.add(group_id)
            self._scheduler.call_later_ms(wait_ms, lambda: self._interval_passed(group_id))

    def _interval_passed(self, group_id: GroupId) -> None:
        self._later.discard(group_id)
        self._marked[group_id] = None
        self._request_flush()

    def compute_due(self) -> None:
        """Compute, or begin to compute, what was marked."""
        while self._marked and not self._is_stopped:
            marked, self._marked = self._marked, {}
            for group_id in marked:
                if group_id not in self._in_flight:
                    self._compute(group_id)

    def _compute(self, group_id: GroupId) -> None:
        problem = self._compute_problem(group_id)
        if problem is None:
            self._last_ms.pop(group_id, None)
            return
        if self._is_quick(problem):
            self._done(problem, self._run(problem))
            return
        self._in_flight.add(group_id)
        self._scheduler.run_computing(
            lambda: self._run(problem), lambda result: self._done_in_thread(problem, result)
        )

    def _is_quick(self, problem: TargetProblem) -> bool:
        if not self._inline_budget_ms:
            return False
        size = problem.problem.members + problem.problem.partitions
        is_mixed = not problem.problem.subscriptions.is_homogeneous
        if size <= (ALWAYS_INLINE_SIZE_MIXED if is_mixed else ALWAYS_INLINE_SIZE):
            return True
        last_ms = self._last_ms.get(problem.group_id)
        if last_ms is None:
            return not is_mixed and size <= INLINE_SIZE
        return last_ms <= self._inline_budget_ms

    def _run(self, problem: TargetProblem) -> npt.NDArray[np.int32] | BaseException:
        began_ms = self._clock.monotonic_ms()
        try:
            return ASSIGNORS[problem.assignor].assign(problem.problem)
        except Exception as failure:  # noqa: BLE001 - an assignor may fail; the group goes on
            return failure
        finally:
            took_ms = self._clock.monotonic_ms() - began_ms
            self._last_ms[problem.group_id] = took_ms
            self._stats.assignor_seconds.add(took_ms / 1000)

    def _done_in_thread(
        self, problem: TargetProblem, result: npt.NDArray[np.int32] | BaseException
    ) -> None:
        self._in_flight.discard(problem.group_id)
        if self._is_stopped:
            return
        self._done(problem, result)
        self._request_flush()

    def _done(self, problem: TargetProblem, result: npt.NDArray[np.int32] | BaseException) -> None:
        if isinstance(result, BaseException):
            self._stats.assignor_failures += 1
            log.error(
                "assignor_failed",
                group_id=problem.group_id,
                assignor=problem.assignor,
                group_epoch=problem.group_epoch,
                cause=repr(result),
            )
            return
        self._install(InstallTarget(problem, result))
