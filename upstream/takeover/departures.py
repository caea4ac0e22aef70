"""The members of a group that returns, on their way from here to the cluster."""

from __future__ import annotations

from typing import Final

import structlog

from model.caller import INTERNAL
from model.commands.places import ReturnGroup
from model.errors import GroupError
from model.ids import GroupId, MemberId
from upstream.cluster.cluster import ClusterUnreachable
from upstream.takeover.asking.cluster_group import ClusterGroup
from upstream.takeover.group_topics import describe_here
from upstream.takeover.moving import Moving

log = structlog.get_logger("muster.upstream")

TELL_AGAIN_MS: Final = 1_000
JOIN_WAIT_MS: Final = 10_000
"""How long a member that is on its way to the cluster is expected to be seen there."""
_SETTLED_STATES: Final = ("CompletingRebalance", "Stable")


class Departures:
    """``members`` are all that were told to go, since the group began to return."""

    def __init__(self, group_id: GroupId, moving: Moving, cluster_group: ClusterGroup) -> None:
        self._group_id = group_id
        self._moving = moving
        self._cluster_group = cluster_group
        self.members: frozenset[MemberId] = frozenset()
        self._gone: set[MemberId] = set()
        self._gone_ms = 0
        self._told_ms = 0

    async def begin(self) -> None:
        """Note that the group returns, and tell its members. Raises ``GroupError``."""
        self.members = frozenset()
        self._gone.clear()
        await self._tell()

    def note_gone(self, member_id: str) -> None:
        """A member has stopped here and is about to join in the cluster."""
        if member_id in self.members:
            self._gone.add(MemberId(member_id))
            self._gone_ms = self._moving.clock_ms()

    async def count(self) -> int:
        """How many are still to come; those on their way must have been seen in the cluster."""
        here = self._count_here()
        try:
            if here and self._moving.clock_ms() - self._told_ms >= TELL_AGAIN_MS:
                await self._tell_again()
        except GroupError as error:
            log.debug("members_not_told", group=self._group_id, cause=error.message)
        if here or not self._gone:
            return here
        if self._moving.clock_ms() - self._gone_ms >= JOIN_WAIT_MS:
            return 0
        try:
            view = await self._cluster_group.describe()
        except ClusterUnreachable:
            return len(self._gone)
        return max(len(self._gone) - len(view.others), 0)

    def _count_here(self) -> int:
        holds = self._moving.coordinator.holds_member
        left = self.members - self._gone
        return sum(holds(self._group_id, member_id) for member_id in left)

    async def _tell(self) -> None:
        coordinator = self._moving.coordinator
        self._told_ms = self._moving.clock_ms()
        await coordinator.call(ReturnGroup(INTERNAL, self._group_id))
        group = await describe_here(coordinator, self._group_id)
        if group is not None:
            self.members |= {member.member_id for member in group.members}

    async def _tell_again(self) -> None:
        """A join phase that had begun may have ended here, with those who waited in it."""
        self._told_ms = self._moving.clock_ms()
        group = await describe_here(self._moving.coordinator, self._group_id)
        if group is not None and group.state in _SETTLED_STATES:
            await self._tell()
