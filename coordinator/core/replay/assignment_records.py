"""Replay of assignment records: the current assignment of a member, and the target assignment."""

from __future__ import annotations

from array import array

from coordinator.core.replay.replayed_groups import count_new_member, find_group
from coordinator.core.replay.token_records import pass_partitions
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import LEAVE_EPOCH, NO_NUMBERS, Member
from coordinator.core.state.shard import Shard
from model.ids import TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    MemberState,
)


def replay_current_member_assignment(
    shard: Shard,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Replay type 8: the current assignment of a member."""
    group = find_group(shard, key.group_id, value is not None)
    if group is None:
        return
    if value is None:
        _clear_current(group, group.entries.get(key.member_id))
        return
    entry = group.entry(key.member_id)
    count_new_member(group, entry)
    entry.has_current = True
    entry.member_epoch = value.member_epoch
    entry.previous_member_epoch = value.previous_member_epoch
    entry.state = _member_state(value.state)
    group.note_reserved(entry)
    before, revoked = entry.assigned, entry.pending_revocation
    group.release(entry, before)
    group.release(entry, revoked)
    entry.assigned = _hold(shard, group, entry, value.assigned_partitions)
    entry.pending_revocation = _hold(shard, group, entry, value.partitions_pending_revocation)
    pass_partitions(shard, group, entry, before, revoked)


def _member_state(state: int) -> MemberState:
    try:
        return MemberState(state)
    except ValueError:
        return MemberState.UNKNOWN


def _clear_current(group: ConsumerGroup, entry: Member | None) -> None:
    if entry is None:
        return
    was_member = entry.is_member
    entry.has_current = False
    entry.member_epoch = entry.previous_member_epoch = LEAVE_EPOCH
    group.note_reserved(entry)
    group.release(entry, entry.assigned)
    group.release(entry, entry.pending_revocation)
    entry.assigned = entry.pending_revocation = NO_NUMBERS
    if was_member and not entry.is_member:
        group.member_count -= 1
        group.untargeted.discard(entry.slot)
        if entry.target is None:
            group.drop_entry(entry)


def _number(
    shard: Shard, group: ConsumerGroup, topic_id: TopicId, partitions: tuple[int, ...]
) -> None:
    """Number all partitions of a topic at once if it is in the image, so that it is one range.

    Kafka writes partitions in the order of a hash set: the last one need not be the highest.
    """
    highest = max(partitions)
    if highest >= group.numbers.partitions(topic_id):
        topic = shard.image.by_id.get(topic_id)
        known = topic.partitions if topic is not None else 0
        group.numbers.ensure(topic_id, max(known, highest + 1))


def _hold(
    shard: Shard,
    group: ConsumerGroup,
    entry: Member,
    topics: tuple[AssignedTopicPartitions, ...],
) -> array[int]:
    held: list[int] = []
    slot = entry.slot
    for topic in topics:
        if not topic.partitions:
            continue
        _number(shard, group, topic.topic_id, topic.partitions)
        group.lengthen()
        numbers = group.numbers.numbers_of(topic.topic_id, topic.partitions)
        # Kafka before 4.3 wrote no assignment epochs; the member epoch is used instead.
        epochs = topic.assignment_epochs or (entry.member_epoch,) * len(numbers)
        owner, epoch_of = group.owner, group.assignment_epoch_of
        for number, epoch in zip(numbers, epochs, strict=True):
            owner[number] = slot
            epoch_of[number] = epoch
        held += numbers
    if not held:
        return NO_NUMBERS
    held.sort()
    return share_numbers(array("i", held), entry.target)


def share_numbers(numbers: array[int], other: array[int] | None) -> array[int]:
    """``other`` if equal, to save memory: a stable member owns exactly its target assignment."""
    return other if other is not None and numbers == other else numbers


def replay_target_assignment_member(
    shard: Shard,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    """Replay type 7: the target assignment of a member."""
    group = find_group(shard, key.group_id, value is not None)
    if group is None:
        return
    if value is None:
        entry = group.entries.get(key.member_id)
        if entry is not None:
            group.clear_target(entry)
            if not entry.is_member:
                group.drop_entry(entry)
        return
    entry = group.entry(key.member_id)
    group.clear_target(entry)
    given: list[int] = []
    for topic in value.topic_partitions:
        if topic.partitions:
            _number(shard, group, topic.topic_id, topic.partitions)
            given += group.numbers.numbers_of(topic.topic_id, topic.partitions)
    group.lengthen()
    target, slot = group.target, entry.slot
    for number in given:
        target[number] = slot
    given.sort()
    entry.target = share_numbers(array("i", given), entry.assigned) if given else NO_NUMBERS
    group.untargeted.discard(slot)


def replay_target_assignment_metadata(
    shard: Shard,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    """Replay type 6: the assignment epoch, which completes a target."""
    group = find_group(shard, key.group_id, value is not None)
    if group is None:
        return
    group.target_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp = 0 if value is None else value.assignment_timestamp
    # Not earlier: between the tombstones of a replaced static member and the records of its
    # successor the numbers of their partitions look unused.
    group.give_numbers_back()
