"""Replay of the side records of one log partition, by kind."""

from __future__ import annotations

from coordinator.core.replay.client_assignor_records import replay_client_assignors
from coordinator.core.replay.freeze_records import replay_group_freeze
from coordinator.core.replay.offset_records import replay_producer_state
from coordinator.core.replay.place_records import replay_group_place
from coordinator.core.replay.reset_records import replay_group_reset
from coordinator.core.state.shard import Shard
from model.client_assignors import ClientAssignorsKey, InstalledMetadataKey
from model.log.side_records import (
    GroupFreezeKey,
    GroupPlaceKey,
    GroupResetKey,
    ProducerGroupKey,
    ProducerStateKey,
    SideRecord,
)


def replay_shard_side(shard: Shard, record: SideRecord) -> None:
    """Replay a side record; must follow the records of its batch, which create the members.

    A record of the whole server is a bug here: it would be lost.
    """
    match record.key:
        case ClientAssignorsKey() | InstalledMetadataKey():
            replay_client_assignors(shard, record)
        case ProducerStateKey() | ProducerGroupKey():
            replay_producer_state(shard, record)
        case GroupPlaceKey():
            replay_group_place(shard, record)
        case GroupResetKey():
            replay_group_reset(shard, record)
        case GroupFreezeKey():
            replay_group_freeze(shard, record)
        case _:
            raise AssertionError(f"not a side record of a log partition: {record}")
