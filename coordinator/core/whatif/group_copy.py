"""A copy of a consumer group in a shard of its own, built from the records of its state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coordinator.core.consumer.reconcile import AssignmentState
from coordinator.core.replay.freeze_records import replay_group_freeze
from coordinator.core.replay.group_records import replay
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.shard import Shard
from model.configs.coordinator_settings import CoordinatorSettings
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    Record,
)
from model.log.side_records import GroupFreezeKey, SideRecord


def copy_group(shard: Shard, group: ConsumerGroup) -> Iterator[Shard]:
    """Yield the same new shard after each member, and once more when the copy is complete.

    The group must not change in between. Members of the classic protocol become members of the
    consumer protocol: their targets are the same.
    """
    copy = make_empty_copy(shard, shard.settings_of(group.group_id))
    freeze = shard.freezes.get(group.group_id)
    if freeze is not None:
        replay_group_freeze(
            copy, SideRecord(GroupFreezeKey(shard.partition, group.group_id), freeze)
        )
    for regex, topics in group.resolved_regexes.items():
        key = ConsumerGroupRegularExpressionKey(group.group_id, regex)
        value = ConsumerGroupRegularExpressionValue(tuple(sorted(topics)), shard.image.version, 0)
        replay(copy, Record(key, value))
    epoch = ConsumerGroupMetadataValue(group.group_epoch, group.metadata_hash)
    replay(copy, Record(ConsumerGroupMetadataKey(group.group_id), epoch))
    for member in group.members():
        for record in _compute_member_records(group, member):
            replay(copy, record)
        yield copy
    target = ConsumerGroupTargetAssignmentMetadataValue(group.target_epoch)
    replay(copy, Record(ConsumerGroupTargetAssignmentMetadataKey(group.group_id), target))
    yield copy


def make_empty_copy(shard: Shard, settings: CoordinatorSettings) -> Shard:
    """A shard without groups, with these settings and the same topics."""
    return Shard(shard.partition, settings, shard.image)


def _compute_member_records(group: ConsumerGroup, member: Member) -> Iterator[Record]:
    group_id, member_id, numbers = group.group_id, member.member_id, group.numbers
    if member.metadata is not None:
        metadata = replace(member.metadata, classic_member_metadata=None)
        yield Record(ConsumerGroupMemberMetadataKey(group_id, member_id), metadata)
    if member.target is not None:
        target = ConsumerGroupTargetAssignmentMemberValue(numbers.topic_partitions(member.target))
        yield Record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), target)
    if member.has_current:
        current = _compute_current(group, member)
        value = ConsumerGroupCurrentMemberAssignmentValue(
            current.member_epoch,
            current.previous_member_epoch,
            int(current.state),
            numbers.assigned_topic_partitions(current.assigned),
            numbers.assigned_topic_partitions(current.pending_revocation),
        )
        yield Record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), value)


def _compute_current(group: ConsumerGroup, member: Member) -> AssignmentState:
    epochs = group.assignment_epoch_of
    return AssignmentState(
        member.member_epoch,
        member.previous_member_epoch,
        member.state,
        {number: epochs[number] for number in member.assigned},
        {number: epochs[number] for number in member.pending_revocation},
    )
