"""Delays before a group's next target: the cooldown after its last one, or a failed assignor."""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.target.target_assignment import TargetProblem
from coordinator.runtime.targets.quick_targets import ALWAYS_INLINE_SIZE, compute_size
from coordinator.runtime.targets.rebalance_cooldowns import RebalanceCooldowns
from model.ids import GroupId

FIRST_WAIT_MS = 1_000
LONGEST_WAIT_MS = 5_000
"""The wait before an assignor is retried doubles from the first value to this one."""


class TargetWaits:
    """The groups that wait. Times are monotonic milliseconds."""

    __slots__ = ("_failures", "_put_off_until_ms", "_rests")

    def __init__(self) -> None:
        self._rests = RebalanceCooldowns()
        self._failures: dict[GroupId, int] = {}
        """Consecutive failures of each group's assignor."""
        self._put_off_until_ms: dict[GroupId, int] = {}

    def compute_wait_ms(self, group_id: GroupId, group: ConsumerGroup | None, now_ms: int) -> int:
        """How long to wait before checking the group again; 0 if it need not wait."""
        put_off_ms = self._put_off_until_ms.get(group_id, 0) - now_ms
        if put_off_ms > 0:
            return put_off_ms
        self._put_off_until_ms.pop(group_id, None)
        return self._rests.compute_wait_ms(group_id, group, now_ms)

    def note_target(self, problem: TargetProblem, now_ms: int) -> None:
        """Note a computed target; starts the cooldown of a large group."""
        self._failures.pop(problem.group_id, None)
        if compute_size(problem) > ALWAYS_INLINE_SIZE:
            self._rests.begin(problem, now_ms)

    def note_failure(self, group_id: GroupId, now_ms: int) -> int:
        """Note a failed assignor; returns how long the group waits."""
        failures = self._failures[group_id] = self._failures.get(group_id, 0) + 1
        wait_ms = min(FIRST_WAIT_MS << min(failures - 1, 8), LONGEST_WAIT_MS)
        self._put_off_until_ms[group_id] = now_ms + wait_ms
        return wait_ms

    def forget(self, group_id: GroupId) -> None:
        """Forget a removed group."""
        self._failures.pop(group_id, None)
        self._put_off_until_ms.pop(group_id, None)
        self._rests.forget(group_id)
