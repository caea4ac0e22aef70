"""Deletion of groups and offsets: validation, and the tombstones.

The offsets are in the store; the runtime passes in which ones exist. Rows O14 and O15 are those of
tests/scenarios/README.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from coordinator.core.client_assignors.declaration import settle_client_assignor_state
from coordinator.core.groups.group_places import compute_place_records
from coordinator.core.groups.group_tombstones import compute_group_tombstones
from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.foreign_groups import ShareGroup, StreamsGroup
from coordinator.core.state.freezes import compute_freeze_end
from coordinator.core.state.open_transactions import OffsetPlace
from coordinator.core.state.outcome import CancelClassicDeadline, Outcome, Release
from coordinator.core.state.reset_of_group import compute_reset_end
from coordinator.core.state.shard import Shard
from model.commands.classic import ClassicDeadline
from model.commands.groups import DeleteGroup
from model.commands.offsets import DeleteOffsets
from model.commands.places import GiveGroupUp
from model.errors import (
    CoordinatorLoadInProgress,
    ErrorCode,
    GroupIdNotFound,
    InvalidGroupId,
    NonEmptyGroup,
    NotCoordinator,
)
from model.ids import GroupId, MemberId, TopicName
from model.log.records import OffsetCommitKey, Record
from model.log.share_records import (
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from model.log.streams_records import (
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from model.now import Now
from model.places import Place
from model.responses.offsets import OffsetDeleteResponse, PartitionResult, TopicResult
from model.responses.response import Done


def check_delete_group(shard: Shard, group_id: GroupId) -> None:
    """Raise ``GroupIdNotFound`` or ``NonEmptyGroup`` unless the group can be deleted (row O15).

    A classic group must be Empty: in other states members have joined or are about to.
    """
    check_is_there(shard, group_id)
    consumer = shard.consumer_groups.get(group_id)
    classic = shard.classic_group(group_id)
    foreign = shard.foreign_groups.get(group_id)
    if (
        (consumer is not None and consumer.member_count)
        or (classic is not None and classic.state is not ClassicGroupState.EMPTY)
        or (foreign is not None and foreign.members)
    ):
        raise NonEmptyGroup(f"The group {group_id} is not empty.")


def check_not_being_deleted(shard: Shard, group_id: GroupId) -> None:
    """Raise a retriable error for a join of a group that is being deleted: it will be gone soon."""
    if group_id in shard.soft.being_deleted:
        raise CoordinatorLoadInProgress(f"The group {group_id} is being deleted.")


def check_is_there(shard: Shard, group_id: GroupId) -> None:
    """Raise ``GroupIdNotFound`` unless a group of any type has that id.

    A group that is being deleted exists to the end, even if it consisted of offsets only and the
    last of them have expired in the meantime.
    """
    if (
        group_id not in shard.consumer_groups
        and not shard.has_other_group(group_id)
        and group_id not in shard.soft.being_deleted
    ):
        raise GroupIdNotFound(f"The group {group_id} does not exist.")


def handle_delete_group(
    shard: Shard, command: DeleteGroup, offsets: Collection[OffsetPlace]
) -> Outcome:
    """Write tombstones of ``offsets``, all that the group has, and of the group, in one batch."""
    check_delete_group(shard, command.group_id)
    if command.validate_only:
        return Outcome(response=Done())
    records = [
        Record(OffsetCommitKey(command.group_id, topic, partition), None)
        for topic, partition in offsets
    ]
    records += _compute_tombstones(shard, command.group_id)
    side = (
        *compute_freeze_end(shard, command.group_id),
        *compute_reset_end(shard, command.group_id),
    )
    return Outcome(tuple(records), Done(), side=side, last_offsets=True)


def handle_give_group_up(
    shard: Shard, command: GiveGroupUp, offsets: Collection[OffsetPlace], now: Now
) -> Outcome:
    """Write tombstones of all that there is of the group: it is the cluster's again."""
    group_id = command.group_id
    records = list(compute_offset_tombstones(group_id, offsets).records)
    classic = shard.classic_group(group_id)
    if group_id in shard.consumer_groups or classic is not None:
        records += compute_group_tombstones(shard, group_id)
    outcome = Outcome(
        tuple(records),
        Done(),
        effects=() if classic is None else tuple(_compute_cancellations(classic)),
        side=(
            *compute_freeze_end(shard, group_id),
            *compute_reset_end(shard, group_id),
            *compute_place_records(shard, group_id, Place.UPSTREAM, now),
        ),
        releases=() if classic is None else tuple(_compute_refusals(classic)),
        last_offsets=True,
    )
    return settle_client_assignor_state(shard, group_id, outcome)


def _compute_cancellations(group: ClassicGroup) -> Iterator[CancelClassicDeadline]:
    for deadline in ClassicDeadline:
        yield CancelClassicDeadline(group.group_id, deadline, MemberId(""))
    for member_id in (*group.members, *group.pending_members):
        yield CancelClassicDeadline(group.group_id, ClassicDeadline.SESSION, member_id)


def _compute_refusals(group: ClassicGroup) -> Iterator[Release]:
    for member in group.members.values():
        if member.awaits is not None:
            error = NotCoordinator(f"The group {group.group_id} is the cluster's again.")
            yield Release(member.member_id, member.awaits, error)


def compute_offset_tombstones(group_id: GroupId, offsets: Iterable[OffsetPlace]) -> Outcome:
    """The tombstones of some offsets of a group that is being deleted."""
    records = (
        Record(OffsetCommitKey(group_id, topic, partition), None) for topic, partition in offsets
    )
    return Outcome(records=tuple(records), response=Done())


def _compute_tombstones(shard: Shard, group_id: GroupId) -> list[Record]:
    """The tombstones of an empty group; those of its members were written when they left."""
    group = shard.foreign_groups.get(group_id)
    match group:
        case None:
            return compute_group_tombstones(shard, group_id)
        case ShareGroup():
            return [
                Record(ShareGroupTargetAssignmentMetadataKey(group_id), None),
                Record(ShareGroupStatePartitionMetadataKey(group_id), None),
                Record(ShareGroupMetadataKey(group_id), None),
            ]
        case StreamsGroup():
            return [
                Record(StreamsGroupTargetAssignmentMetadataKey(group_id), None),
                Record(StreamsGroupMetadataKey(group_id), None),
                Record(StreamsGroupTopologyKey(group_id), None),
            ]
        case _:
            assert_never(group)


# ------------------------------------------------------------------------------------- offsets


def check_delete_offsets(shard: Shard, group_id: GroupId) -> None:
    """Raise the errors of row O14 that concern the whole request, not one partition."""
    if not group_id:
        raise InvalidGroupId("The group id is empty.")
    if isinstance(shard.foreign_groups.get(group_id), ShareGroup):
        raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
    check_is_there(shard, group_id)
    classic = shard.classic_group(group_id)
    if (
        group_id not in shard.consumer_groups
        and classic is not None
        and classic.state is not ClassicGroupState.EMPTY
        and classic.protocol_type != PROTOCOL_TYPE
    ):
        raise NonEmptyGroup(f"The group {group_id} is not empty.")


def handle_delete_offsets(
    shard: Shard, command: DeleteOffsets, offsets: Collection[OffsetPlace]
) -> Outcome:
    """Write tombstones of the requested partitions that are in ``offsets``; a result for each.

    As in Kafka, deleting an offset that was never committed succeeds.
    """
    check_delete_offsets(shard, command.group_id)
    subscribed = compute_subscribed_topics(shard, command.group_id)
    results, records = [], []
    for name, partitions in command.topics:
        topic = shard.image.by_name.get(name)
        rows = []
        for partition in partitions:
            if topic is None or not 0 <= partition < topic.partitions:
                rows.append(PartitionResult(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif subscribed is None or name in subscribed:
                rows.append(PartitionResult(partition, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
            else:
                rows.append(PartitionResult(partition, ErrorCode.NONE))
                if (name, partition) in offsets and not command.validate_only:
                    key = OffsetCommitKey(command.group_id, name, partition)
                    records.append(Record(key, None))
        topic_id = None if topic is None else topic.topic_id
        results.append(TopicResult(name, topic_id, tuple(rows)))
    return Outcome(records=tuple(records), response=OffsetDeleteResponse(tuple(results)))


def compute_subscribed_topics(shard: Shard, group_id: GroupId) -> Collection[TopicName] | None:
    """The topics that the members subscribe to; ``None`` if unknown, which counts as all."""
    group = shard.consumer_groups.get(group_id)
    if group is not None:
        return group.subscribed_topic_names()
    if group_id in shard.foreign_groups:
        foreign = shard.foreign_groups[group_id]
        return None if foreign.members else ()
    classic = shard.classic_group(group_id)
    return () if classic is None else _compute_classic_topics(classic)


def _compute_classic_topics(group: ClassicGroup) -> Collection[TopicName] | None:
    return group.subscribed_topics if group.members else ()
