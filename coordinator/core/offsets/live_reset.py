"""Reset of the offsets of a consumer group with members, under one group epoch.

It begins with an epoch of its own and the same target. From then on nobody gets the partitions of
the reset: members that own them give them up on their way to that epoch, as they give up what is
another's, or are removed at their rebalance timeout. When nobody owns any of them, the offsets are
set and the partitions are free, in one write. Their members get them at the same epoch, and look
where to begin. Each step is durable, so a restart goes on where the last process was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH, Member
from coordinator.core.state.freezes import check_not_frozen
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.metadata_hash import compute_metadata_hash
from coordinator.core.state.outcome import Effect, FinishResetSoon, NoteEpochCauses, Outcome
from coordinator.core.state.reset_of_group import ResetOfGroup, compute_reset_end
from coordinator.core.state.shard import Shard
from model.commands.resets import FinishReset, ResetOffsets
from model.errors import ResetRefused
from model.group_resets import GroupReset, ResetTopic
from model.ids import GroupId, TopicId, TopicName
from model.log.commit_records import OffsetRow
from model.log.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
)
from model.log.side_records import GroupResetKey, SideRecord
from model.now import Now
from model.past.causes import Cause, CauseKind
from model.past.offset_changes import NO_OFFSET
from model.responses.resets import OffsetsReset
from model.responses.response import Done


def begin_reset(
    shard: Shard, group: ConsumerGroup, command: ResetOffsets, now: Now, revision: str
) -> Outcome:
    """Bump the group epoch and withhold the partitions. Raises ``ResetRefused``."""
    group_id = group.group_id
    # Nobody would get the partitions again.
    check_not_frozen(shard, group_id)
    known = shard.resets.get(group_id)
    if known is not None and not known.is_set:
        raise ResetRefused(
            f"Another reset of group {group_id} goes on since epoch {known.value.group_epoch}: "
            "wait for it."
        )
    response = OffsetsReset(revision, is_live=True, group_epoch=group.group_epoch + 1)
    if command.validate_only:
        return Outcome(response=response)
    records = compute_epoch_bump(shard, group, group_id, group.subscribed_topic_names())
    caller = command.caller
    cause = Cause(
        CauseKind.ADMINISTRATOR,
        client_id=caller.client_id,
        client_host=caller.client_host,
        reason=f"{caller.principal} resets offsets",
    )
    effects: tuple[Effect, ...] = (
        NoteEpochCauses(group_id, (cause,)),
        FinishResetSoon(group_id),
    )
    if _keeps_target(shard, group):
        value = ConsumerGroupTargetAssignmentMetadataValue(group.group_epoch + 1, now.wall_ms)
        records.append(Record(ConsumerGroupTargetAssignmentMetadataKey(group_id), value))
    else:
        effects = (*effects, compute_target_effect(shard, group, group_id))
    reset = GroupReset(
        group.group_epoch + 1,
        now.wall_ms,
        caller.principal,
        tuple(_list_topics(shard, command)),
        undoes=command.undoes,
    )
    return Outcome(tuple(records), response, effects, side=(_make_record(shard, group_id, reset),))


def _keeps_target(shard: Shard, group: ConsumerGroup) -> bool:
    """Whether the target is what an assignor would be asked for: then nothing else moves."""
    names = group.subscribed_topic_names()
    return (
        group.target_epoch == group.group_epoch
        and group.client_assignor_state is None
        and not group.untargeted
        and compute_metadata_hash(names, shard.image, shard.soft.topic_hashes)
        == group.metadata_hash
    )


def _list_topics(shard: Shard, command: ResetOffsets) -> Iterator[ResetTopic]:
    for wanted in command.topics:
        assert wanted.name is not None, "a reset names its topics"
        topic_id = shard.image.by_name[wanted.name].topic_id
        yield ResetTopic(wanted.name, topic_id, tuple(wanted.offsets.rows()))


def _make_record(shard: Shard, group_id: GroupId, reset: GroupReset | None) -> SideRecord:
    return SideRecord(GroupResetKey(shard.partition, group_id), reset)


def handle_finish_reset(shard: Shard, command: FinishReset, now: Now) -> Outcome:
    """Set the offsets if nobody owns any of the partitions; else do nothing.

    A group that became a classic group with members is left as it is: the reset is off. So it is
    if the group is gone.
    """
    group_id = command.group_id
    reset = shard.resets.get(group_id)
    if reset is None or reset.is_set:
        return Outcome(response=Done())
    group = shard.consumer_groups.get(group_id)
    classic = shard.classic_group(group_id)
    is_off = group is None and classic is not None and classic.members
    if is_off or not shard.holds_group(group_id):
        return Outcome(response=Done(), side=(_make_record(shard, group_id, None),))
    if group is not None and any(find_owners(group, reset)):
        return Outcome(response=Done())
    topics = tuple(_without_metadata(reset.value.topics))
    done = replace(reset.value, topics=topics, set_at_ms=now.wall_ms)
    return Outcome(
        tuple(sorted(_compute_offsets(shard, group_id, reset.value, now), key=is_tombstone)),
        Done(),
        side=(_make_record(shard, group_id, done),),
    )


def _compute_offsets(
    shard: Shard, group_id: GroupId, reset: GroupReset, now: Now
) -> Iterator[Record]:
    """The records of the offsets, without topics that are gone."""
    for topic in reset.topics:
        if topic.topic_id in shard.image.by_id:
            yield from make_offset_records(group_id, topic.name, topic.topic_id, topic.rows, now)


def _without_metadata(topics: Iterable[ResetTopic]) -> Iterator[ResetTopic]:
    """Kept as long as the group: which partitions they were, and not what else was set with them.

    An undo sets as much metadata as had been committed.
    """
    for topic in topics:
        rows = ((partition, offset, epoch, "") for partition, offset, epoch, _ in topic.rows)
        yield replace(topic, rows=tuple(rows))


def make_offset_records(
    group_id: GroupId,
    name: TopicName,
    topic_id: TopicId,
    rows: Iterable[OffsetRow],
    now: Now,
) -> Iterator[Record]:
    """The records that set offsets of a topic, and the tombstones of those to remove."""
    for partition, offset, leader_epoch, metadata in rows:
        key = OffsetCommitKey(group_id, name, partition)
        if offset == NO_OFFSET:
            yield Record(key, None)
        else:
            value = OffsetCommitValue(offset, leader_epoch, metadata, now.wall_ms, -1, topic_id)
            yield Record(key, value)


def is_tombstone(record: Record) -> bool:
    """Sorts what sets offsets before what removes some: the group has offsets then."""
    return record.value is None


def find_owners(group: ConsumerGroup, reset: ResetOfGroup) -> Iterator[Member]:
    """The members that own partitions of the reset, one for each partition.

    A static member that is away reads nothing and commits nothing.
    """
    for number in reset.find_numbers(group):
        slot = group.owner[number]
        member = None if slot == NOBODY else group.slots[slot]
        if member is not None and member.member_epoch != STATIC_LEAVE_EPOCH:
            yield member


def settle_reset(shard: Shard, group_id: GroupId, outcome: Outcome) -> Outcome:
    """After each change of a group whose reset goes on it may be time to set the offsets.

    A reset ends with its group, also if nobody deletes that.
    """
    reset = shard.resets.get(group_id)
    if reset is None:
        return outcome
    group = shard.consumer_groups.get(group_id)
    is_empty = group is None or not group.member_count
    if is_empty and outcome.converted is None and _removes_group(outcome):
        return outcome.with_side((*outcome.side, *compute_reset_end(shard, group_id)))
    if reset.is_set:
        return outcome
    return replace(outcome, effects=(*outcome.effects, FinishResetSoon(group_id)))


def _removes_group(outcome: Outcome) -> bool:
    return any(
        said is None and isinstance(key, ConsumerGroupMetadataKey | GroupMetadataKey)
        for key, said in outcome.records
    )
