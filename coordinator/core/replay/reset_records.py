"""Replay of resets of the offsets of groups with members."""

from __future__ import annotations

from coordinator.core.state.reset_of_group import ResetOfGroup
from coordinator.core.state.shard import Shard
from model.group_resets import GroupReset
from model.log.side_records import GroupResetKey, SideRecord


def replay_group_reset(shard: Shard, record: SideRecord) -> None:
    """Replay kind 20. What members may own and commit depends on it."""
    match record.key, record.value:
        case GroupResetKey(_, group_id), GroupReset() as reset:
            shard.state.resets[group_id] = ResetOfGroup(reset)
        case GroupResetKey(_, group_id), None:
            shard.state.resets.pop(group_id, None)
        case _:
            raise AssertionError(f"unexpected side record: {record}")
    group = shard.state.consumer_groups.get(group_id)
    if group is not None:
        group.revision += 1
