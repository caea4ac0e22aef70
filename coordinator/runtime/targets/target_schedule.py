"""Schedules target computations: during the flush if quick, else on a thread.

Each group has one computation in flight. The current target stays in force until the new one is
installed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import islice

import structlog

from coordinator.core.state.shard import Shard
from coordinator.core.target.frozen_target import compute_frozen_target
from coordinator.core.target.target_assignment import (
    InstallTarget,
    TargetProblem,
    find_target_problem,
)
from coordinator.core.target.target_steps import ContinueMoves
from coordinator.runtime.clock import Cancellable, Scheduler, SteadyClock
from coordinator.runtime.loop.slices import Slices
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.targets.assignor_runs import Assignments, Failure, Result
from coordinator.runtime.targets.client_assignments import ClientAssignments
from coordinator.runtime.targets.move_budgets import MoveSteps
from coordinator.runtime.targets.quick_targets import QuickTargets
from coordinator.runtime.targets.target_installs import TargetInstalls
from coordinator.runtime.targets.target_waits import TargetWaits
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId
from muster.assignors.registry import Assignors

log = structlog.get_logger()

GROUPS_IN_A_BATCH = 100
"""The most groups that get a target in one batch; a small target costs some 0.2 ms."""


class Targets:
    """The groups that need a target, and the computations in flight.

    ``submit`` takes the resulting commands; ``request_flush`` asks for a flush, which calls
    ``compute_due``. ``local`` has the requests for client-side assignments.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        settings: CoordinatorSettings,
        assignors: Assignors,
        *,
        shard_of: Callable[[GroupId], Shard],
        submit: Callable[[InstallTarget | ContinueMoves], None],
        request_flush: Callable[[], None],
        slices: Slices,
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._assignments = Assignments(
            scheduler, stats, settings.assignor_time_limit_ms, assignors
        )
        self._moves = MoveSteps(self._assignments, shard_of, submit)
        self._stats = stats
        self._quick = QuickTargets(self._assignments, settings.assignor_inline_budget_ms)
        self._shard_of = shard_of
        self.client_assignments = ClientAssignments(
            scheduler,
            clock,
            stats,
            settings.assignor_time_limit_ms,
            shard_of=shard_of,
            mark=self.mark,
        )
        self._installs = TargetInstalls(slices, shard_of=shard_of, submit=submit)
        self._request_flush = request_flush
        self._marked: dict[GroupId, None] = {}
        self._later: dict[GroupId, tuple[int, Cancellable]] = {}
        """When each group's wait ends (monotonic ms), and its timer."""
        self._in_flight: set[GroupId] = set()
        self._waits = TargetWaits()
        self._is_stopped = False

    def stop(self) -> None:
        """Install nothing more, because the store is about to close."""
        self._is_stopped = True
        self._installs.stop()
        self.client_assignments.stop()

    def begin(self, group_settings: Mapping[GroupId, CoordinatorSettings]) -> None:
        """Resume unfinished steps of groups with config overrides; every group is loaded."""
        self._moves.begin(group_settings)

    def look_at(self, group_ids: Collection[GroupId]) -> None:
        """Note durable changes: start the groups' next steps, or forget removed groups."""
        self._moves.look_at(group_ids)
        for group_id in group_ids:
            if group_id not in self._shard_of(group_id).consumer_groups:
                self._forget(group_id)

    def _forget(self, group_id: GroupId) -> None:
        self._quick.forget(group_id)
        self._waits.forget(group_id)
        self._cancel_wait(group_id)

    @property
    def in_flight(self) -> int:
        """How many targets are being computed on a thread or installed."""
        return len(self._in_flight)

    def mark(self, group_id: GroupId, not_before_ms: int = 0, interval_ms: int = 0) -> None:
        """Schedule a target for the group: not before this wall time, but within the interval."""
        wait_ms = min(not_before_ms - self._clock.now().wall_ms, interval_ms)
        if wait_ms <= 0:
            self._mark_now(group_id)
        else:
            self._mark_later(group_id, wait_ms)

    def _mark_now(self, group_id: GroupId) -> None:
        if group_id not in self._in_flight:
            # Else the mark may be dropped, and the wait is for what follows.
            self._cancel_wait(group_id)
        self._marked[group_id] = None
        self._request_flush()

    def _mark_later(self, group_id: GroupId, wait_ms: int) -> None:
        """Wait, unless the group waits for less: an interval may have become shorter."""
        until_ms = self._now_ms() + wait_ms
        if group_id in self._later and self._later[group_id][0] <= until_ms:
            return
        self._cancel_wait(group_id)
        timer = self._scheduler.call_later_ms(wait_ms, lambda: self._wait_ended(group_id))
        self._later[group_id] = until_ms, timer

    def _wait_ended(self, group_id: GroupId) -> None:
        del self._later[group_id]
        self._mark_now(group_id)

    def _cancel_wait(self, group_id: GroupId) -> None:
        waiting = self._later.pop(group_id, None)
        if waiting is not None:
            waiting[1].cancel()

    def compute_due(self) -> None:
        """Compute the marked targets, or start computing them."""
        left = GROUPS_IN_A_BATCH
        while self._marked and not self._is_stopped:
            if not left:
                # Very many groups need one (a topic of theirs changed): the rest go into the next
                # batch.
                self._scheduler.call_soon(self._request_flush)
                return
            group_ids = tuple(islice(self._marked, left))
            left -= len(group_ids)
            for group_id in group_ids:
                del self._marked[group_id]
                if group_id not in self._in_flight:
                    self._compute_alone(group_id)

    def _compute_alone(self, group_id: GroupId) -> None:
        """Contain a failure to this group: the batch also has other groups' records."""
        try:
            self._compute_rested(group_id)
        except Exception as bug:
            log.exception("computing_target_failed", group_id=group_id)
            self._in_flight.discard(group_id)
            self._ask_again(group_id, bug)

    def _compute_rested(self, group_id: GroupId) -> None:
        group = self._shard_of(group_id).consumer_groups.get(group_id)
        wait_ms = self._waits.compute_wait_ms(group_id, group, self._now_ms())
        if wait_ms > 0:
            self._mark_later(group_id, wait_ms)
        else:
            self._compute(group_id)

    def _compute(self, group_id: GroupId) -> None:
        if self.client_assignments.takes(group_id):
            return
        problem = find_target_problem(self._shard_of(group_id), group_id)
        if problem is None:
            return
        if problem.is_frozen:
            self._done(problem, compute_frozen_target(problem))
            return
        if self._quick.is_quick(problem):
            self._done(problem, self._run(problem))
            return
        self._in_flight.add(group_id)
        self._assignments.start(problem, partial(self._done_in_thread, problem, self._now_ms()))

    def _run(self, problem: TargetProblem) -> Result:
        began_ms = self._now_ms()
        result = self._assignments.run(problem)
        self._quick.note(problem.group_id, self._now_ms() - began_ms)
        return result

    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def _done_in_thread(self, problem: TargetProblem, began_ms: int, result: Result) -> None:
        self._in_flight.discard(problem.group_id)
        self._quick.note(problem.group_id, self._now_ms() - began_ms)
        if self._is_stopped:
            return
        try:
            self._done(problem, result)
        except Exception as bug:
            log.exception("installing_target_failed", group_id=problem.group_id)
            self._ask_again(problem.group_id, bug)
        self._request_flush()

    def _done(self, problem: TargetProblem, command: Result) -> None:
        if problem.group_id not in self._shard_of(problem.group_id).consumer_groups:
            # The group was removed meanwhile.
            self._forget(problem.group_id)
            return
        if isinstance(command, Failure):
            self._assignments.report(problem, command)
            self._put_off(problem, command)
            return
        self._waits.note_target(problem, self._now_ms())
        self._stats.targets_installed += 1
        if self._installs.install(command, lambda bug: self._installed(command, bug)):
            self._moves.note(command)
        else:
            self._in_flight.add(command.group_id)

    def _installed(self, command: InstallTarget, bug: Exception | None) -> None:
        self._in_flight.discard(command.group_id)
        if bug is not None:
            self._ask_again(command.group_id, bug)
        else:
            self._moves.note(command)
        self._request_flush()

    def _ask_again(self, group_id: GroupId, bug: Exception) -> None:
        """Retry later; the current target stays in force."""
        self._assignments.count(Failure("raised", repr(bug)))
        self._wait(group_id)

    def _put_off(self, problem: TargetProblem, failure: Failure) -> None:
        """Retry later if the assignor is custom or exceeded its time limit."""
        if failure.reason == "late" or self._assignments.is_custom(problem.assignor):
            self._wait(problem.group_id)

    def _wait(self, group_id: GroupId) -> None:
        self._mark_later(group_id, self._waits.note_failure(group_id, self._now_ms()))
