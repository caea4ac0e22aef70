"""Static members (KIP-345 in KIP-848): temporary leave, return, and replacement.

A member with a ``group.instance.id`` that leaves with epoch -2 keeps its partitions until its
session times out. A member that joins with this instance id until then, with any member id,
replaces it.
"""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer.consumer_member import (
    JOIN_EPOCH,
    NO_NUMBERS,
    STATIC_LEAVE_EPOCH,
    Member,
)
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import FencedInstanceId, InvalidRequest, UnknownMemberId, UnreleasedInstanceId
from model.ids import GroupId, InstanceId, MemberId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    Record,
)


def find_member(
    group: ConsumerGroup | None, command: ConsumerGroupHeartbeat
) -> tuple[Member | None, bool]:
    """The member of a heartbeat (``None`` for a new one), and whether the heartbeat replaces it.

    A heartbeat with epoch 0 replaces a static member that left with epoch -2 or uses the classic
    protocol. Raises the errors of rows C13, C15 and C16 (tests/scenarios/README.md).
    """
    if command.instance_id is not None:
        return _find_static_member(group, command.instance_id, command)
    member = group.member(command.member_id) if group is not None else None
    if member is None and command.member_epoch != JOIN_EPOCH:
        raise compute_unknown_member(command.group_id, command.member_id)
    return member, False


def _find_static_member(
    group: ConsumerGroup | None, instance_id: InstanceId, command: ConsumerGroupHeartbeat
) -> tuple[Member | None, bool]:
    holder = group.static_member(instance_id) if group is not None else None
    if command.member_epoch != JOIN_EPOCH:
        holder = check_static_member(holder, instance_id, command.group_id, command.member_id)
        return holder, False
    known = group.member(command.member_id) if group is not None else None
    if known is not None and known is not holder:
        _check_instance_of(known, instance_id, is_free=holder is None)
    if holder is None:
        return known, False
    if holder.member_epoch == STATIC_LEAVE_EPOCH or holder.classic is not None:
        # A classic member has no temporary leave: it is replaced without notice (KAFKA-17228).
        return holder, True
    if holder is not known:
        raise UnreleasedInstanceId(
            f"Static member {command.member_id} with instance id {instance_id} cannot join the "
            f"group because the instance id is owned by {holder.member_id} member."
        )
    # The owner itself: the response to its join was lost, or it was fenced. Kafka 4.3.0 refuses
    # it for ever.
    return holder, False


def _check_instance_of(known: Member, instance_id: InstanceId, is_free: bool) -> None:
    """Raise ``InvalidRequest`` if an existing member would change its instance id."""
    known_as = known.metadata.instance_id if known.metadata is not None else None
    if known_as is not None or not is_free:
        raise InvalidRequest(
            f"Member {known.member_id} cannot join as instance {instance_id}: it is in the group "
            f"{'as instance ' + known_as if known_as is not None else 'without an instance id'}."
        )


def check_static_member(
    holder: Member | None, instance_id: InstanceId, group_id: GroupId, member_id: MemberId | None
) -> Member:
    """Return the owner of the instance id; ``member_id`` is ``None`` if only the instance is named.

    Raises ``UnknownMemberId`` if it has no owner, ``FencedInstanceId`` if another member owns it.
    """
    if holder is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown in group {group_id}.")
    if member_id is not None and holder.member_id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{holder.member_id}."
        )
    return holder


def compute_static_leave(group: ConsumerGroup, member: Member) -> Record:
    """The record of a temporary leave: keeps the assignment, drops the pending revocation."""
    return _current_record(group, member.member_id, member, STATIC_LEAVE_EPOCH)


def compute_replacement(
    group: ConsumerGroup, member: Member, member_id: MemberId
) -> tuple[Record, ...]:
    """The records that replace a member by ``member_id`` (Kafka's ``replaceMember``).

    The new member inherits the target assignment and the partitions, at epoch 0; the group epoch
    is not bumped.
    """
    assert member.metadata is not None, "a static member has metadata"
    group_id = group.group_id
    target = group.numbers.topic_partitions(member.target or NO_NUMBERS)
    return (
        *compute_tombstones(group_id, member.member_id),
        Record(ConsumerGroupMemberMetadataKey(group_id, member_id), member.metadata),
        Record(
            ConsumerGroupTargetAssignmentMemberKey(group_id, member_id),
            ConsumerGroupTargetAssignmentMemberValue(target),
        ),
        _current_record(group, member_id, member, JOIN_EPOCH),
    )


def compute_tombstones(group_id: GroupId, member_id: MemberId) -> tuple[Record, ...]:
    """The tombstones of a member, in Kafka's order."""
    return (
        Record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        Record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        Record(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    )


def _current_record(
    group: ConsumerGroup, member_id: MemberId, member: Member, member_epoch: int
) -> Record:
    """The current assignment record at epoch 0 or -2; Kafka sets the assignment epochs to 0."""
    assigned = tuple(
        AssignedTopicPartitions(topic.topic_id, topic.partitions, (0,) * len(topic.partitions))
        for topic in group.numbers.topic_partitions(member.assigned)
    )
    previous = member.previous_member_epoch if member_epoch < 0 else JOIN_EPOCH
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch, previous, int(member.state), assigned, ()
    )
    return Record(ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member_id), value)
