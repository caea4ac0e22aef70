"""The tombstones of a group, in Kafka's order."""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.conversion import in_slices
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps, run_at_once
from coordinator.core.subscriptions.regex_changes import compute_all_regex_tombstones
from model.ids import GroupId
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    Record,
)


def compute_group_tombstones(shard: Shard, group_id: GroupId) -> list[Record]:
    """The tombstones of a group, except its offsets; a group without type counts as classic."""
    group = shard.consumer_groups.get(group_id)
    if group is None:
        return [Record(GroupMetadataKey(group_id), None)]
    return compute_consumer_group_tombstones(group)


def compute_consumer_group_tombstones(group: ConsumerGroup) -> list[Record]:
    """The tombstones of a consumer group and its members."""
    return run_at_once(compute_tombstones_in_slices(group))


def compute_tombstones_in_slices(group: ConsumerGroup) -> Steps[list[Record]]:
    """``compute_consumer_group_tombstones`` in slices."""
    group_id = group.group_id
    current: list[Record] = []
    targets: list[Record] = []
    metadata: list[Record] = []
    for part in in_slices(group.entries.values()):
        for entry in part:
            own = entry.member_id
            # A compaction may have left the target of a member whose other records are gone.
            targets.append(Record(ConsumerGroupTargetAssignmentMemberKey(group_id, own), None))
            if entry.is_member:
                current.append(Record(ConsumerGroupCurrentMemberAssignmentKey(group_id, own), None))
                metadata.append(Record(ConsumerGroupMemberMetadataKey(group_id, own), None))
        yield
    return [
        *current,
        *targets,
        Record(ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        *metadata,
        *compute_all_regex_tombstones(group),
        Record(ConsumerGroupPartitionMetadataKey(group_id), None),
        Record(ConsumerGroupMetadataKey(group_id), None),
    ]
