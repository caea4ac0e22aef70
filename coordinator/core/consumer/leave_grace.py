"""The grace period of members without an instance id (``consumer.leave.grace.ms``).

The record of a member that leaves or expires stays with epoch -2, as after a static leave. The
first newcomer with the same client id and subscription replaces it without a new group epoch.
Kafka ends the session of such a member like any other, so that an exported log is safe.
"""

from __future__ import annotations

from coordinator.core.consumer.member_metadata import compute_updated_metadata
from coordinator.core.consumer.static_members import compute_static_leave
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, Member, compute_likeness
from coordinator.core.state.outcome import ArmLeaveGrace, CancelRebalanceTimeout, Outcome
from coordinator.core.state.shard import Shard
from model.commands.consumer import ConsumerGroupHeartbeat
from model.responses.response import Response


def is_to_reserve(shard: Shard, group: ConsumerGroup, member: Member) -> bool:
    """Whether the partitions of a member that goes are reserved for a newcomer.

    Static members have their own way back, and classic members rejoin by another protocol.
    """
    metadata = member.metadata
    return (
        shard.settings_of(group.group_id).group_consumer_leave_grace_ms > 0
        and metadata is not None
        and metadata.instance_id is None
        and member.classic is None
        and not member.is_reserved
    )


def compute_reservation(
    shard: Shard,
    group: ConsumerGroup,
    member: Member,
    response: Response,
    silent_ms: int | None = None,
) -> Outcome:
    """Reserve the member's partitions; what it had to revoke is free.

    ``silent_ms`` is how long nothing had been heard from it; ``None`` if it leaves.
    """
    group_id, member_id = group.group_id, member.member_id
    grace_ms = shard.settings_of(group_id).group_consumer_leave_grace_ms
    return Outcome(
        records=(compute_static_leave(group, member),),
        response=response,
        effects=(
            CancelRebalanceTimeout(group_id, member_id),
            ArmLeaveGrace(group_id, member_id, grace_ms, silent_ms),
        ),
    )


def find_reserved(group: ConsumerGroup | None, command: ConsumerGroupHeartbeat) -> Member | None:
    """The reserved member that this heartbeat takes over; ``None`` if there is none.

    A member takes over its own reservation first, also as a static member from now on. Raises
    ``UnknownMemberId`` if a reserved member goes on as if it had not gone.
    """
    if group is None or not group.reserved:
        return None
    known = group.member(command.member_id)
    if known is not None:
        if not known.is_reserved:
            return None
        if command.member_epoch != JOIN_EPOCH:
            raise compute_unknown_member(command.group_id, command.member_id)
        # What another member has as its instance is refused as for any member.
        is_free = command.instance_id is None or group.static_member(command.instance_id) is None
        return known if is_free else None
    if command.member_epoch != JOIN_EPOCH or command.instance_id is not None:
        return None
    joining = compute_updated_metadata(None, command)
    found = group.reserved.find(compute_likeness(joining))
    return None if found is None else group.entries[found]
