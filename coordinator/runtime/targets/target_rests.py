"""How long large groups rest after a target.

A new target is news for every member and may move every partition, so that a large group rests
after one until its members have followed and nobody else comes: who joins meanwhile is in the next
one, with all others that do. Were the next one computed while they are on their way, they would
never arrive, and those who want to join would wait for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.target.target_assignment import TargetProblem
from coordinator.core.target.target_steps import is_target_reached
from model.ids import GroupId

COST_OF_MEMBER = 50
"""What a new target costs a member, counted in partitions: two or three heartbeats and records."""

PARTITIONS_PER_REST_MS = 100
"""A group rests for at most a millisecond for so many partitions."""

QUIET_MS = 500
"""When nobody has come for so long, a group whose members have followed rests no longer."""


class _Rest(NamedTuple):
    """Until when at the latest, and since when the group is seen at its epoch; monotonic times."""

    until_ms: int
    seen_epoch: int
    since_ms: int


class TargetRests:
    """The groups that rest. Times are monotonic milliseconds."""

    __slots__ = ("_rests",)

    def __init__(self) -> None:
        self._rests: dict[GroupId, _Rest] = {}

    def begin(self, problem: TargetProblem, now_ms: int) -> None:
        """A target for this is installed: its group rests."""
        members, partitions = problem.problem.members, problem.problem.partitions
        rest_ms = (members * COST_OF_MEMBER + partitions) // PARTITIONS_PER_REST_MS
        self._rests[problem.group_id] = _Rest(now_ms + rest_ms, problem.group_epoch, now_ms)

    def forget(self, group_id: GroupId) -> None:
        """The group is gone."""
        self._rests.pop(group_id, None)

    def compute_wait_ms(self, group_id: GroupId, group: ConsumerGroup | None, now_ms: int) -> int:
        """How long to wait before the group is looked at again; 0 where it rests no longer."""
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
