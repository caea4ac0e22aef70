"""Replay of the places of groups, for a Muster in front of a cluster."""

from __future__ import annotations

from coordinator.core.state.shard import Shard
from model.log.side_records import GroupPlaceKey, SideRecord
from model.places import GroupPlace


def replay_group_place(shard: Shard, record: SideRecord) -> None:
    """Replay kind 14. The place of a group does not depend on what else there is of it."""
    match record.key, record.value:
        case GroupPlaceKey(_, group_id), GroupPlace() as place:
            shard.state.places[group_id] = place
        case GroupPlaceKey(_, group_id), None:
            shard.state.places.pop(group_id, None)
        case _:
            raise AssertionError(f"unexpected side record: {record}")
