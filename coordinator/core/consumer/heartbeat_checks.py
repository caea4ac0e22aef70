"""Validation of heartbeats. The rows (C8 to C16) are those of tests/scenarios/README.md."""

from __future__ import annotations

from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, Member
from coordinator.core.state.shard import Shard
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat
from model.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    UnsupportedAssignor,
)
from model.ids import MemberId


def check_server_assignor(shard: Shard, command: ConsumerGroupHeartbeat) -> None:
    """Raise ``UnsupportedAssignor`` for a server-side assignor that is not configured (row C8)."""
    supported = shard.settings_of(command.group_id).group_consumer_assignors
    if command.server_assignor is not UNCHANGED and command.server_assignor not in supported:
        raise UnsupportedAssignor(
            f"ServerAssignor {command.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(supported)}."
        )


def find_group(shard: Shard, command: ConsumerGroupHeartbeat) -> ConsumerGroup | None:
    """The group of the heartbeat; ``None`` if this join creates it.

    Raises ``GroupIdNotFound`` for an unknown group or one of another type (row C11).
    """
    group = shard.consumer_groups.get(command.group_id)
    if group is not None:
        return group
    group_id = command.group_id
    if not shard.has_other_group(group_id):
        if command.member_epoch != JOIN_EPOCH:
            raise GroupIdNotFound(f"Consumer group {group_id} not found.")
        return None
    classic = shard.classic_group(group_id)
    is_empty = group_id not in shard.foreign_groups and (classic is None or not classic.members)
    if command.member_epoch != JOIN_EPOCH or not is_empty:
        raise GroupIdNotFound(
            f"Group {group_id} is not a consumer group.{_compute_whereabouts(classic, command)}"
        )
    return None


def _compute_whereabouts(classic: ClassicGroup | None, command: ConsumerGroupHeartbeat) -> str:
    """Name the instance's current member after a downgrade: the process has been replaced."""
    instance_id = command.instance_id
    if classic is None or instance_id is None or instance_id not in classic.instances:
        return ""
    return f" Instance id {instance_id} is owned by its member {classic.instances[instance_id]}."


def check_room(shard: Shard, group: ConsumerGroup | None, member_id: MemberId) -> None:
    """Raise ``GroupMaxSizeReached`` if a new member exceeds ``group.consumer.max.size`` (row C12).

    ``None`` is a group that the join creates.
    """
    if group is None:
        return
    size = shard.settings_of(group.group_id).group_consumer_max_size
    if group.member_count >= size and group.member(member_id) is None:
        raise GroupMaxSizeReached(
            f"The consumer group has reached its maximum capacity of {size} members."
        )


def check_member_epoch(
    group: ConsumerGroup, member: Member, command: ConsumerGroupHeartbeat
) -> None:
    """Raise ``FencedMemberEpoch`` if the epoch is not the member's (row C14).

    The previous epoch is accepted if the client owns only assigned partitions: the response with
    the new epoch was lost. Epoch 0 is always accepted: a fenced member rejoins with its member id
    (KAFKA-19233).
    """
    received, known = command.member_epoch, member.member_epoch
    if received in (JOIN_EPOCH, known):
        return
    if received > known:
        raise FencedMemberEpoch(
            f"The consumer group member has a greater member epoch ({received}) than the one "
            f"known by the group coordinator ({known}). The member must abandon all its "
            "partitions and rejoin."
        )
    if received == member.previous_member_epoch and _owns_only_assigned(group, member, command):
        return
    raise FencedMemberEpoch(
        f"The consumer group member has a smaller member epoch ({received}) than the one known "
        f"by the group coordinator ({known}). The member must abandon all its partitions and "
        "rejoin."
    )


def _owns_only_assigned(
    group: ConsumerGroup, member: Member, command: ConsumerGroupHeartbeat
) -> bool:
    if command.owned is None or not group.numbers.has_all(command.owned):
        return False
    return group.numbers.known_numbers(command.owned) <= set(member.assigned)
