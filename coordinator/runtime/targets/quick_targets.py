"""Decides which targets are computed on the loop: those that do not block it for long."""

from __future__ import annotations

from coordinator.core.target.target_assignment import TargetProblem
from coordinator.runtime.targets.assignor_runs import Assignments
from model.ids import GroupId

ALWAYS_INLINE_SIZE = 20_000
"""Members plus partitions of a problem that counts as quick, whatever a busy machine measured."""

ALWAYS_INLINE_SIZE_OF_SEARCHES = 2_000
"""The same for a search, which every assignor does if members subscribe to different topics."""

INLINE_SIZE = 300_000
"""The same for a problem that was never timed."""

INLINE_TOPICS = 1_000
"""A target of more topics takes as long to install as to encode, so it gets its own iterations."""


class QuickTargets:
    """Remembers how long each group's last target took. With a budget of 0 ms none is quick."""

    __slots__ = ("_assignments", "_budget_ms", "_last_ms")

    def __init__(self, assignments: Assignments, budget_ms: float) -> None:
        self._assignments = assignments
        self._budget_ms = budget_ms
        self._last_ms: dict[GroupId, float] = {}

    def note(self, group_id: GroupId, took_ms: float) -> None:
        """Note how long a target of the group took."""
        self._last_ms[group_id] = took_ms

    def forget(self, group_id: GroupId) -> None:
        """Forget a removed group."""
        self._last_ms.pop(group_id, None)

    def is_quick(self, problem: TargetProblem) -> bool:
        """Whether to compute on the loop."""
        if (
            not self._budget_ms
            or self._assignments.is_custom(problem.assignor)
            or len(problem.topics) > INLINE_TOPICS
        ):
            return False
        size = compute_size(problem)
        is_search = not problem.problem.subscriptions.is_homogeneous or self._assignments.is_search(
            problem.assignor
        )
        if size <= (ALWAYS_INLINE_SIZE_OF_SEARCHES if is_search else ALWAYS_INLINE_SIZE):
            return True
        last_ms = self._last_ms.get(problem.group_id)
        if last_ms is None:
            return not is_search and size <= INLINE_SIZE
        return last_ms <= self._budget_ms


def compute_size(problem: TargetProblem) -> int:
    """Members plus partitions of the problem."""
    return problem.problem.members + problem.problem.partitions
