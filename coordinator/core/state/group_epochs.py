"""Group epochs: the records of a new group and of an epoch bump, and the request for its target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.metadata_hash import compute_metadata_hash
from coordinator.core.state.outcome import ComputeTarget, Effect
from coordinator.core.state.shard import Shard
from model.errors import UnknownServerError
from model.ids import GroupId, TopicName
from model.log.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    GroupMetadataKey,
    Record,
)
from model.now import Now

LAST_EPOCH = (1 << 31) - 1

COST_OF_MEMBER: Final = 50
"""What a target costs a member, in partitions: two or three heartbeats, and records."""

PARTITIONS_PER_MS: Final = 30
"""The assignment interval is one millisecond per this many partitions."""

SHORTEST_INTERVAL_MS: Final = 25
LONGEST_INTERVAL_MS: Final = 500
"""Half of Kafka's default interval: a change is to be shared by all, not to be waited for."""


def compute_epoch_bump(
    shard: Shard, group: ConsumerGroup | None, group_id: GroupId, names: Iterable[TopicName]
) -> list[Record]:
    """The records of the next group epoch; ``names`` are the subscribed topics after the change.

    Raises ``UnknownServerError`` at the last epoch: an epoch must never be lower than one before.
    """
    epoch = (group.group_epoch if group is not None else 1) + 1
    if epoch > LAST_EPOCH:
        raise UnknownServerError(
            f"Group {group_id} has reached the maximum group epoch: delete the group."
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
    """Request a target if the group lacks one, or will after the bump."""
    if not bumped and (group is None or group.target_epoch >= group.group_epoch):
        return ()
    return (compute_target_effect(shard, group, group_id),)


def compute_target_effect(
    shard: Shard, group: ConsumerGroup | None, group_id: GroupId, last_ms: int | None = None
) -> ComputeTarget:
    """Request a target, not before the assignment interval has passed (KIP-1263).

    ``last_ms`` is when the group got its last target, if the group does not have it yet.
    """
    if last_ms is None:
        last_ms = group.assignment_timestamp if group is not None else 0
    interval_ms = shard.settings_of(group_id).group_consumer_assignment_interval_ms
    if not interval_ms and group is not None:
        interval_ms = compute_interval_of_size_ms(group.member_count, len(group.target))
    return ComputeTarget(group_id, last_ms + interval_ms if last_ms else 0, interval_ms)


def compute_target_cost(members: int, partitions: int) -> int:
    """What a target costs all members of a group, in partitions."""
    return members * COST_OF_MEMBER + partitions


def compute_interval_of_size_ms(members: int, partitions: int) -> int:
    """The assignment interval of a group without a configured one; 0 for a small group.

    Members that start together join within some milliseconds. With a target for each, all of them
    would be told to give up partitions again and again, and the first ones would wait for those.
    """
    interval_ms = compute_target_cost(members, partitions) // PARTITIONS_PER_MS
    if interval_ms < SHORTEST_INTERVAL_MS:
        return 0
    return min(interval_ms, LONGEST_INTERVAL_MS)


def compute_replaced_group(shard: Shard, group_id: GroupId) -> tuple[Record, ...]:
    """The tombstone of the classic group, empty or with offsets only, that a join replaces.

    As in Kafka's ``maybeDeleteEmptyClassicGroup``, a group without a record gets one as well.
    """
    if shard.classic_group(group_id) is not None or shard.has_simple_group(group_id):
        return (Record(GroupMetadataKey(group_id), None),)
    return ()
