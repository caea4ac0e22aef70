"""Replay of group records. No code outside this package modifies group state.

It accepts any order that a log or a compaction of it can have: tombstones of unknown keys, members
before their group, targets before their members (KAFKA-17306, KAFKA-19862, KAFKA-21102). Live state
and loaded state are equal by construction, because both come from replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from coordinator.core.replay.assignment_records import (
    replay_current_member_assignment,
    replay_target_assignment_member,
    replay_target_assignment_metadata,
)
from coordinator.core.replay.foreign_records import FOREIGN_REPLAYS
from coordinator.core.replay.offset_records import replay_offset_commit
from coordinator.core.replay.replayed_groups import count_new_member, find_group
from coordinator.core.replay.token_records import pass_all_partitions
from coordinator.core.state.classic.classic_group import ClassicGroup, compute_classic_group
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, regex_of
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.conversion import Converted
from coordinator.core.state.shard import Shard
from model.ids import GroupId, TopicName
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    Record,
    RecordKey,
    RecordValue,
    UnknownKey,
    UnknownValue,
)


def replay(shard: Shard, record: Record) -> None:
    """Apply one record, which is in the log or about to be written, to the state of its shard."""
    key, value = record
    if isinstance(value, UnknownValue):
        return
    _REPLAYS[type(key)](shard, key, value)


# ------------------------------------------------------------------------------------- members


def replay_member_metadata(
    shard: Shard,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    """Replay type 5: member metadata. A tombstone removes the member and its other state."""
    group = find_group(shard, key.group_id, value is not None)
    if group is None:
        return
    if value is None:
        entry = group.entries.get(key.member_id)
        if entry is not None:
            _remove(shard, group, entry)
        return
    entry = group.entry(key.member_id)
    count_new_member(group, entry)
    old = entry.metadata
    old_instance = None
    if old is not None:
        old_instance = old.instance_id
        group.count_assignor(old.server_assignor, -1)
        group.count_classic(old, -1)
    group.count_assignor(value.server_assignor, 1)
    group.count_classic(value, 1)
    group.change_instance(entry.member_id, old_instance, value.instance_id)
    # Do not intern the metadata of a classic member: it includes the partitions that the member
    # owns, so it is unique and changes with each join.
    is_shared = value.classic_member_metadata is None
    entry.metadata = group.metadata_values.setdefault(value, value) if is_shared else value
    group.note_reserved(entry)
    _drop_unsaid(group)
    _change_subscription(shard, group, old, value)


def _remove(shard: Shard, group: ConsumerGroup, entry: Member) -> None:
    if entry.is_member:
        group.member_count -= 1
    if entry.metadata is not None:
        _change_subscription(shard, group, entry.metadata, None)
        group.count_assignor(entry.metadata.server_assignor, -1)
        group.count_classic(entry.metadata, -1)
        group.change_instance(entry.member_id, entry.metadata.instance_id, None)
        _drop_unsaid(group)
    if group.client_assignor_state is not None:
        group.client_assignor_state.forget(entry.member_id)
        group.client_assignor_state = (
            None if group.client_assignor_state.is_empty else group.client_assignor_state
        )
    group.release(entry, entry.assigned)
    group.release(entry, entry.pending_revocation)
    group.clear_target(entry)
    group.drop_entry(entry)


def _drop_unsaid(group: ConsumerGroup) -> None:
    """Drop interned metadata that no member has, once it outweighs the rest."""
    if len(group.metadata_values) > 2 * group.member_count + 16:
        said = [member.metadata for member in group.entries.values() if member.metadata is not None]
        group.metadata_values = {
            value: value for value in said if value.classic_member_metadata is None
        }


def _change_subscription(
    shard: Shard,
    group: ConsumerGroup,
    old: ConsumerGroupMemberMetadataValue | None,
    new: ConsumerGroupMemberMetadataValue | None,
) -> None:
    old_names = old.subscribed_topic_names if old is not None else ()
    new_names = new.subscribed_topic_names if new is not None else ()
    if old_names != new_names:
        group.count_names(new_names, 1)
        group.count_names(old_names, -1)
        _note_subscriptions(shard, group, new_names)
        _note_subscriptions(shard, group, old_names)
    old_regex, new_regex = regex_of(old), regex_of(new)
    if old_regex != new_regex:
        if new_regex:
            _note_subscriptions(shard, group, group.count_regex(new_regex, 1))
        if old_regex:
            _note_subscriptions(shard, group, group.count_regex(old_regex, -1))


def _note_subscriptions(shard: Shard, group: ConsumerGroup, names: Iterable[TopicName]) -> None:
    """Update ``groups_by_topic`` for names whose subscription may have changed."""
    for name in names:
        if group.subscribes_to(name):
            shard.state.groups_by_topic.setdefault(name, set()).add(group.group_id)
        else:
            _forget_subscription(shard, group.group_id, name)


def _forget_subscription(shard: Shard, group_id: GroupId, name: TopicName) -> None:
    groups = shard.state.groups_by_topic.get(name)
    if groups is not None:
        groups.discard(group_id)
        if not groups:
            del shard.state.groups_by_topic[name]


# --------------------------------------------------------------------------------------- group


def replay_group_epoch(
    shard: Shard, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> None:
    """Replay type 3: the group epoch. A tombstone removes the group.

    It removes what is left of the members, too: compaction may have removed their tombstones.
    """
    group = find_group(shard, key.group_id, value is not None)
    if group is None:
        return
    if value is not None:
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash
        return
    for name in list(group.subscribed_topic_names()):
        _forget_subscription(shard, group.group_id, name)
    del shard.state.consumer_groups[key.group_id]


def replay_partition_metadata(
    shard: Shard,
    key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    """Replay type 4, the predecessor of the metadata hash.

    Only its presence is kept, so that the next group epoch writes its tombstone.
    """
    group = find_group(shard, key.group_id, value is not None)
    if group is not None:
        group.has_partition_metadata = value is not None


def replay_regular_expression(
    shard: Shard,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    """Replay type 16: the topics of a regular expression, whether members use it or not."""
    group = find_group(shard, key.group_id, value is not None)
    if group is not None:
        topics = None if value is None else frozenset(value.topics)
        _note_subscriptions(shard, group, group.resolve_regex(key.regular_expression, topics))


def replay_classic_group(
    shard: Shard, key: GroupMetadataKey, value: GroupMetadataValue | None
) -> None:
    """Replay type 2: the whole classic group; drops its live value."""
    shard.soft.live_classic_groups.pop(key.group, None)
    if value is None:
        shard.state.classic_groups.pop(key.group, None)
    else:
        shard.state.classic_groups[key.group] = compute_classic_group(key.group, value)


def replay_conversion(
    shard: Shard, group_id: GroupId, records: tuple[Record, ...], converted: Converted
) -> None:
    """``replay`` of each record; the records of the conversion itself are applied as a whole."""
    group = converted.group
    if isinstance(group, ClassicGroup):
        before = shard.state.consumer_groups.pop(group_id)
        before.revision += 1
        for name in before.subscribed_topic_names():
            _forget_subscription(shard, group_id, name)
        shard.soft.live_classic_groups.pop(group_id, None)
        shard.state.classic_groups[group_id] = group
    else:
        shard.soft.live_classic_groups.pop(group_id, None)
        shard.state.classic_groups.pop(group_id, None)
        shard.state.consumer_groups[group_id] = group
        pass_all_partitions(shard, group)
        _note_subscriptions(shard, group, group.subscribed_topic_names())
    for record in records[converted.count :]:
        replay(shard, record)


def replay_group_configs(shard: Shard, group_id: GroupId) -> None:
    """Invalidate what is cached for a group whose configs changed; the catalogue has the configs.

    Cached responses and commit grants were computed from the configs before.
    """
    find_group(shard, group_id, create=False)


def _replay_nothing(shard: Shard, key: RecordKey, value: RecordValue | None) -> None:
    """Ignore records of unknown types, which stay in the log."""


_REPLAYS: dict[type, Callable[[Shard, Any, Any], None]] = {
    LegacyOffsetCommitKey: replay_offset_commit,
    OffsetCommitKey: replay_offset_commit,
    GroupMetadataKey: replay_classic_group,
    ConsumerGroupMetadataKey: replay_group_epoch,
    ConsumerGroupPartitionMetadataKey: replay_partition_metadata,
    ConsumerGroupMemberMetadataKey: replay_member_metadata,
    ConsumerGroupTargetAssignmentMetadataKey: replay_target_assignment_metadata,
    ConsumerGroupTargetAssignmentMemberKey: replay_target_assignment_member,
    ConsumerGroupCurrentMemberAssignmentKey: replay_current_member_assignment,
    ConsumerGroupRegularExpressionKey: replay_regular_expression,
    UnknownKey: _replay_nothing,
    **FOREIGN_REPLAYS,
}
