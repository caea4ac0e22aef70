"""Pending changes of members, read from the shard of their group."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.core.consumer.pending_changes import compute_members_in_transit, has_pending_change
from coordinator.core.state.shard import Shard
from model.ids import GroupId, MemberId


class PendingChanges:
    """What watches read from groups."""

    def __init__(self, shard_of: Callable[[GroupId], Shard]) -> None:
        self._shard_of = shard_of

    def has_pending_change(self, group_id: GroupId, member_id: MemberId) -> bool:
        return has_pending_change(self._shard_of(group_id), group_id, member_id)

    def members_in_transit(self, group_id: GroupId) -> list[MemberId]:
        return compute_members_in_transit(self._shard_of(group_id), group_id)
