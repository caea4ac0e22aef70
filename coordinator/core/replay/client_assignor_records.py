"""Replay of the side records of client-side assignors; must follow the records of their batch."""

from __future__ import annotations

from coordinator.core.state.client_assignor_state import LocalState
from coordinator.core.state.shard import Shard
from model.local_assignors import (
    InstalledMetadataKey,
    InstalledMetadataValue,
    LocalAssignorsKey,
    LocalAssignorsValue,
)
from model.log.side_records import SideRecord


def replay_local(shard: Shard, record: SideRecord) -> None:
    """Apply a side record; ignore other kinds, and those of unknown members.

    A log that was changed without its side records leaves some of removed members.
    """
    key, value = record
    if not isinstance(key, LocalAssignorsKey | InstalledMetadataKey):
        return
    group = shard.consumer_groups.get(key.group_id)
    if group is None or group.member(key.member_id) is None:
        return
    group.revision += 1
    local = group.local = group.local or LocalState()
    if isinstance(key, LocalAssignorsKey):
        if isinstance(value, LocalAssignorsValue):
            local.assignors[key.member_id] = value.assignors
        else:
            local.assignors.pop(key.member_id, None)
    elif isinstance(value, InstalledMetadataValue):
        local.installed[key.member_id] = value
    else:
        local.installed.pop(key.member_id, None)
    if local.is_empty:
        group.local = None
