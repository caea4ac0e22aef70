"""Removal of members by an administrator: as if they had left, but all or none, with a preview."""

from __future__ import annotations

from dataclasses import replace

from coordinator.core.classic.classic_leave import find_leaving, handle_classic_leave
from coordinator.core.consumer.removal import WhyRemoved
from coordinator.core.groups.group_deletion import check_is_there
from coordinator.core.groups.group_description import describe_classic_member, describe_members
from coordinator.core.offsets.offset_reset import compute_revision
from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.consumer import LeaveGroup
from model.commands.groups import RemoveMembers
from model.errors import PolicyViolation, UnknownMemberId
from model.ids import MemberId
from model.now import Now
from model.past.causes import CauseKind
from model.responses.groups import DescribedClassicMember, MembersRemoved
from translator.departure import compute_departure, find_leaving_member


def handle_remove_members(shard: Shard, command: RemoveMembers, now: Now) -> Outcome:
    """Remove the members, or with ``validate_only`` only describe them.

    Raises ``GroupIdNotFound``, ``UnknownMemberId`` or ``FencedInstanceId``, and
    ``PolicyViolation`` if the group has changed since the preview.
    """
    group_id = command.group_id
    check_is_there(shard, group_id)
    if group_id in shard.foreign_groups:
        raise PolicyViolation(f"Group {group_id} is neither a consumer group nor a classic group.")
    revision = compute_revision(shard, group_id)
    if command.revision is not None and command.revision != revision:
        raise PolicyViolation(
            f"The group {group_id} has changed since the preview: look at a new preview."
        )
    reason = f"{command.caller.principal} removes it"
    if command.reason:
        reason = f"{reason}: {command.reason}"
    group = shard.consumer_groups.get(group_id)
    if group is not None:
        return _remove_from_consumer_group(shard, group, command, now, revision, reason)
    classic = shard.classic_group(group_id)
    if classic is None:
        # It only has offsets.
        raise UnknownMemberId(f"Group {group_id} has no members.")
    return _remove_from_classic_group(shard, classic, command, now, revision, reason)


def _remove_from_consumer_group(
    shard: Shard,
    group: ConsumerGroup,
    command: RemoveMembers,
    now: Now,
    revision: str,
    reason: str,
) -> Outcome:
    found = {}
    for leaving in command.members:
        member = find_leaving_member(group, leaving.member_id, leaving.instance_id)
        found[member.member_id] = member
    gone = tuple(found.values())
    response = MembersRemoved(
        revision, group.member_count - len(gone), describe_members(shard, group, gone)
    )
    if command.validate_only:
        return Outcome(response=response)
    why = WhyRemoved(CauseKind.ADMINISTRATOR, dict.fromkeys(found, reason))
    return compute_departure(shard, group, gone, now, response, why)


def _remove_from_classic_group(
    shard: Shard,
    group: ClassicGroup,
    command: RemoveMembers,
    now: Now,
    revision: str,
    reason: str,
) -> Outcome:
    found = dict.fromkeys(find_leaving(group, leaving) for leaving in command.members)
    remaining = sum(member_id not in found for member_id in group.members)
    response = MembersRemoved(
        revision,
        remaining,
        classic_members=tuple(_describe(group, member_id) for member_id in found),
        protocol_type=group.protocol_type or "",
    )
    if command.validate_only:
        return Outcome(response=response)
    members = tuple(
        replace(leaving, reason=reason, by_administrator=True) for leaving in command.members
    )
    leave = LeaveGroup(command.caller, group.group_id, members)
    return replace(handle_classic_leave(shard, group, leave, now), response=response)


def _describe(group: ClassicGroup, member_id: MemberId) -> DescribedClassicMember:
    member = group.members.get(member_id)
    if member is None:
        # It was given its id and has not joined with it yet.
        return DescribedClassicMember(member_id, None, "", "", b"", b"")
    return describe_classic_member(member, group.state is ClassicGroupState.STABLE)
