"""Move budgets at run time: starts a group's next step once all members have followed the last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import structlog

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import (
    InstallTarget,
    TargetProblem,
    compute_target_problem,
)
from coordinator.core.target.target_steps import ContinueMoves, has_followed, is_another_step
from coordinator.runtime.targets.assignor_runs import Assignments, Failure, Result
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId

log = structlog.get_logger()

MOST_STALLS = 3
"""After this many steps in a row without fewer moves left, the group stops stepping."""


class MoveSteps:
    """The groups with partition moves held back by their budget.

    ``submit`` takes the coordinator's own commands.
    """

    def __init__(
        self,
        assignments: Assignments,
        shard_of: Callable[[GroupId], Shard],
        submit: Callable[[ContinueMoves], None],
    ) -> None:
        self._assignments = assignments
        self._shard_of = shard_of
        self._submit = submit
        self._waiting: set[GroupId] = set()
        self._least_left: dict[GroupId, int] = {}
        self._stalls: dict[GroupId, int] = {}

    def note(self, command: InstallTarget) -> None:
        """Note an installed target and the moves that it leaves for later."""
        group_id, left = command.group_id, command.moves_left
        if not left:
            self._forget(group_id)
            return
        least = self._least_left.get(group_id)
        has_progressed = least is None or left < least
        self._least_left[group_id] = left if least is None else min(left, least)
        self._stalls[group_id] = 0 if has_progressed else self._stalls[group_id] + 1
        if self._stalls[group_id] < MOST_STALLS and len(command.changed):
            self._waiting.add(group_id)
            return
        log.warning("move_steps_given_up", group_id=group_id, moves_left=left)
        self._forget(group_id)

    def _find_group(self, group_id: GroupId) -> ConsumerGroup | None:
        return self._shard_of(group_id).consumer_groups.get(group_id)

    def _forget(self, group_id: GroupId) -> None:
        self._waiting.discard(group_id)
        self._least_left.pop(group_id, None)
        self._stalls.pop(group_id, None)

    def look_at(self, group_ids: Collection[GroupId]) -> None:
        """Start the next step of the changed groups whose members have followed the last one."""
        if not self._waiting:
            return
        for group_id in sorted(self._waiting.intersection(group_ids)):
            group = self._find_group(group_id)
            if group is None or not group.member_count:
                self._forget(group_id)
            elif has_followed(group):
                self._waiting.discard(group_id)
                self._submit(ContinueMoves(group_id))

    def begin(self, group_settings: Mapping[GroupId, CoordinatorSettings]) -> None:
        """Look for steps that the last process left unfinished; every group is loaded."""
        for group_id, settings in sorted(group_settings.items()):
            if settings.assignor_configs.has_move_budget:
                self._probe(group_id)

    def _probe(self, group_id: GroupId) -> None:
        """Ask the assignor whether it would move anything, before spending a group epoch on it."""
        group = self._find_group(group_id)
        if group is None or not group.member_count:
            return
        problem = compute_target_problem(self._shard_of(group_id), group)
        self._assignments.start(problem, partial(self._probed, problem))

    def _probed(self, problem: TargetProblem, result: Result) -> None:
        if isinstance(result, Failure) or not is_another_step(problem, result):
            return
        self._waiting.add(problem.group_id)
        self.look_at((problem.group_id,))
