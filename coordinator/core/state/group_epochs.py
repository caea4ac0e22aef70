"""Group epochs: the record of a new one, and the target that it asks for."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.metadata_hash import compute_metadata_hash
from coordinator.core.state.outcome import ComputeTarget, Effect
from coordinator.core.state.shard import Shard
from model.commands import Now
from model.errors import UnknownServerError
from model.ids import GroupId, TopicName
from model.log.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    Record,
)

LAST_EPOCH = (1 << 31) - 1


def compute_epoch_bump(
    shard: Shard, group: ConsumerGroup | None, group_id: GroupId, names: Iterable[TopicName]
) -> list[Record]:
    """The records of a new group epoch over these subscribed names.

    Raises ``UnknownServerError`` where there is none: members compare epochs, none may be lower.
    """
    epoch = (group.group_epoch if group is not None else 1) + 1
    if epoch > LAST_EPOCH:
        raise UnknownServerError(
            f"Group {group_id} has the last epoch that there is: it has to be deleted."
        )
    metadata_hash = compute_metadata_hash(names, shard.image, shard.soft.topic_hashes)
    value = ConsumerGroupMetadataValue(epoch, metadata_hash)
    records = [Record(ConsumerGroupMetadataKey(group_id), value)]
    if group is not None and group.has_partition_metadata:
        records.append(Record(ConsumerGroupPartitionMetadataKey(group_id), None))
    return records


def compute_target_effects(
    shard: Shard, group: ConsumerGroup | None, group_id: GroupId, bumped: bool, now: Now
) -> tuple[Effect, ...]:
    """Ask for a target where the group lacks one, or will."""
    if not bumped and (group is None or group.target_epoch >= group.group_epoch):
        return ()
    return (compute_target_effect(shard, group, group_id),)


def compute_target_effect(
    shard: Shard, group: ConsumerGroup | None, group_id: GroupId
) -> ComputeTarget:
    """When the next target may be computed (KIP-1263); the first one at once."""
    interval_ms = shard.settings_of(group_id).group_consumer_assignment_interval_ms
    last_ms = group.assignment_timestamp if group is not None else 0
    return ComputeTarget(group_id, last_ms + interval_ms if last_ms and interval_ms else 0)
