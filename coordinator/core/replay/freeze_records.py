"""Replay of freezes of groups."""

from __future__ import annotations

from coordinator.core.state.shard import Shard
from model.group_freeze import GroupFreeze
from model.log.side_records import GroupFreezeKey, SideRecord


def replay_group_freeze(shard: Shard, record: SideRecord) -> None:
    """Replay kind 22. The target of a new group epoch depends on it."""
    match record.key, record.value:
        case GroupFreezeKey(_, group_id), GroupFreeze() as freeze:
            shard.state.freezes[group_id] = freeze
        case GroupFreezeKey(_, group_id), None:
            shard.state.freezes.pop(group_id, None)
        case _:
            raise AssertionError(f"unexpected side record: {record}")
    group = shard.state.consumer_groups.get(group_id)
    if group is not None:
        group.revision += 1
