"""Static members (KIP-345 in KIP-848): an instance that leaves for a while and comes back.

A member with a ``group.instance.id`` that leaves with epoch -2 keeps its partitions until its
session ends. Whoever joins as that instance meanwhile, by any member id, takes its place.
"""

from __future__ import annotations

from coordinator.core.state.consumer_group import ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer_member import (
    JOIN_EPOCH,
    NO_NUMBERS,
    STATIC_LEAVE_EPOCH,
    Member,
)
from model.commands import ConsumerGroupHeartbeat
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
    """The member that a heartbeat is of, ``None`` for a new one; whether it returns.

    One that returns takes the place of the member, which has left with epoch -2 or speaks the
    classic protocol. Raises what rows C13, C15 and C16 of Kafka's table say.
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
        # A classic member never leaves for a while: its successor comes unannounced (KAFKA-17228).
        return holder, True
    if holder is not known:
        raise UnreleasedInstanceId(
            f"Member {command.member_id} cannot join as instance {instance_id}: that is member "
            f"{holder.member_id}, which has not left."
        )
    # Its own: the answer to its join was lost, or it was fenced. Kafka 4.3.0 refuses it for ever.
    return holder, False


def _check_instance_of(known: Member, instance_id: InstanceId, is_free: bool) -> None:
    """A member id that is in the group already stays the instance that it is."""
    known_as = known.metadata.instance_id if known.metadata is not None else None
    if known_as is not None or not is_free:
        raise InvalidRequest(
            f"Member {known.member_id} cannot join as instance {instance_id}: it is in the group "
            f"{'as instance ' + known_as if known_as is not None else 'without an instance id'}."
        )


def check_static_member(
    holder: Member | None, instance_id: InstanceId, group_id: GroupId, member_id: MemberId | None
) -> Member:
    """The holder of the instance id. Raises where there is none, or where it is not the member.

    ``member_id`` is ``None`` where only the instance is named.
    """
    if holder is None:
        raise UnknownMemberId(f"Nobody is instance {instance_id} in group {group_id}.")
    if member_id is not None and holder.member_id != member_id:
        raise FencedInstanceId(
            f"Instance {instance_id} is member {holder.member_id} now, and not {member_id}."
        )
    return holder


def compute_static_leave(group: ConsumerGroup, member: Member) -> Record:
    """The member is away: it keeps what is assigned to it and gives up what it had to revoke."""
    return _current_record(group, member.member_id, member, STATIC_LEAVE_EPOCH)


def compute_replacement(
    group: ConsumerGroup, member: Member, member_id: MemberId
) -> tuple[Record, ...]:
    """The records by which ``member_id`` takes the place of a member (Kafka's ``replaceMember``).

    It gets the target and the partitions of the other at epoch 0, and no group epoch is spent.
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
    """What removes a member from the log, in Kafka's order."""
    return (
        Record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        Record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        Record(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    )


def _current_record(
    group: ConsumerGroup, member_id: MemberId, member: Member, member_epoch: int
) -> Record:
    """What the member holds, at an epoch that is none; Kafka sets the assignment epochs to 0."""
    assigned = tuple(
        AssignedTopicPartitions(topic.topic_id, topic.partitions, (0,) * len(topic.partitions))
        for topic in group.numbers.topic_partitions(member.assigned)
    )
    previous = member.previous_member_epoch if member_epoch < 0 else JOIN_EPOCH
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch, previous, int(member.state), assigned, ()
    )
    return Record(ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member_id), value)
