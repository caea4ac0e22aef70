"""The rebalance cooldown of large groups after a new target.

A new target is a change for every member and may move every partition. A large group therefore
waits until its members have followed the target and no member joins any more; all members that
joined meanwhile share the next target. If the next one were computed while members are still
reconciling, they would never reach a target, and joining members would wait for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.group_epochs import compute_target_cost
from coordinator.core.target.target_assignment import TargetProblem
from coordinator.core.target.target_steps import is_target_reached
from model.ids import GroupId

PARTITIONS_PER_REST_MS = 100
"""The cooldown is at most one millisecond per this many partitions."""

QUIET_MS = 500
"""The cooldown ends once the members have followed and none has joined for this long."""


class _Cooldown(NamedTuple):
    """When the cooldown ends at the latest, and since when the group has its epoch (monotonic)."""

    until_ms: int
    seen_epoch: int
    since_ms: int


class RebalanceCooldowns:
    """The groups in cooldown. Times are monotonic milliseconds."""

    __slots__ = ("_rests",)

    def __init__(self) -> None:
        self._rests: dict[GroupId, _Cooldown] = {}

    def begin(self, problem: TargetProblem, now_ms: int) -> None:
        """Start the group's cooldown; a target for ``problem`` is installed."""
        cost = compute_target_cost(problem.problem.members, problem.problem.partitions)
        rest_ms = cost // PARTITIONS_PER_REST_MS
        self._rests[problem.group_id] = _Cooldown(now_ms + rest_ms, problem.group_epoch, now_ms)

    def forget(self, group_id: GroupId) -> None:
        """Forget a removed group."""
        self._rests.pop(group_id, None)

    def compute_wait_ms(self, group_id: GroupId, group: ConsumerGroup | None, now_ms: int) -> int:
        """How long to wait before checking the group again; 0 if its cooldown is over."""
        rest = self._rests.get(group_id)
        if rest is None:
            return 0
        if group is None or rest.until_ms <= now_ms:
            del self._rests[group_id]
            return 0
        if group.group_epoch != rest.seen_epoch:
            rest = rest._replace(seen_epoch=group.group_epoch, since_ms=now_ms)
            self._rests[group_id] = rest
        quiet_ms = rest.since_ms + QUIET_MS - now_ms
        if quiet_ms <= 0 and is_target_reached(group):
            del self._rests[group_id]
            return 0
        return min(rest.until_ms - now_ms, QUIET_MS if quiet_ms <= 0 else quiet_ms)
