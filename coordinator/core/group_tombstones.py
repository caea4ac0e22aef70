"""What removes a group from the log, in Kafka's order."""

from __future__ import annotations

from coordinator.core.consumer_group import ConsumerGroup
from coordinator.core.regexes import compute_all_regex_tombstones
from coordinator.core.shard import Shard
from model.ids import GroupId
from model.records import (
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
    """What removes an empty group; a group of offsets alone gets the tombstone of a classic one."""
    group = shard.consumer_groups.get(group_id)
    if group is None:
        return [Record(GroupMetadataKey(group_id), None)]
    return compute_consumer_group_tombstones(group)


def compute_consumer_group_tombstones(group: ConsumerGroup) -> list[Record]:
    """What removes a consumer group with the members that it has."""
    group_id = group.group_id
    member_ids = [member.member_id for member in group.members()]
    return [
        *(
            Record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None)
            for member_id in member_ids
        ),
        # Of members whose other records are gone a compaction may have left the target.
        *(
            Record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None)
            for member_id in group.entries
        ),
        Record(ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        *(
            Record(ConsumerGroupMemberMetadataKey(group_id, member_id), None)
            for member_id in member_ids
        ),
        *compute_all_regex_tombstones(group),
        Record(ConsumerGroupPartitionMetadataKey(group_id), None),
        Record(ConsumerGroupMetadataKey(group_id), None),
    ]
