"""Replay of the side records of client-side assignors; must follow the records of their batch."""

from __future__ import annotations

from coordinator.core.state.consumer.client_assignor_state import ClientAssignorState
from coordinator.core.state.shard import Shard
from model.client_assignors import (
    ClientAssignorsKey,
    ClientAssignorsValue,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.log.side_records import SideRecord


def replay_client_assignors(shard: Shard, record: SideRecord) -> None:
    """Apply a side record; ignore those of unknown members.

    A log that was changed without its side records leaves some of removed members.
    """
    key, value = record
    assert isinstance(key, ClientAssignorsKey | InstalledMetadataKey)
    group = shard.consumer_groups.get(key.group_id)
    if group is None or group.member(key.member_id) is None:
        return
    group.revision += 1
    local = group.client_assignor_state = group.client_assignor_state or ClientAssignorState()
    if isinstance(key, ClientAssignorsKey):
        if isinstance(value, ClientAssignorsValue):
            local.assignors[key.member_id] = value.assignors
        else:
            local.assignors.pop(key.member_id, None)
    elif isinstance(value, InstalledMetadataValue):
        local.installed[key.member_id] = value
    else:
        local.installed.pop(key.member_id, None)
    if local.is_empty:
        group.client_assignor_state = None
