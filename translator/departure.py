"""Leaving a consumer group, which may downgrade it: the last consumer-protocol member leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from coordinator.core.classic.classic_leave import handle_classic_leave
from coordinator.core.consumer.leave_grace import compute_reservation, is_to_reserve
from coordinator.core.consumer.removal import WhyRemoved, compute_removal
from coordinator.core.consumer.static_members import check_static_member, compute_static_leave
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH, Member
from coordinator.core.state.epoch_causes import compute_leave_kind
from coordinator.core.state.outcome import CancelRebalanceTimeout, Outcome
from coordinator.core.state.shard import Shard
from model.commands.consumer import (
    ConsumerGroupLeave,
    Deadline,
    ExpireMember,
    LeaveGroup,
    LeavingMember,
)
from model.errors import ErrorCode, GroupError, GroupIdNotFound
from model.ids import InstanceId, MemberId
from model.log.records import MemberState
from model.now import Now
from model.past.causes import CauseKind
from model.responses.classic import LeaveGroupResponse
from model.responses.consumer import ConsumerGroupLeaveResponse
from model.responses.response import Done, Response
from translator.downgrade import compute_downgrade, is_to_downgrade

LEFT: Final = WhyRemoved(CauseKind.MEMBER_LEFT)
SESSION_EXPIRED: Final = WhyRemoved(CauseKind.SESSION_EXPIRED)
NOT_REPLACED: Final = "nobody took its place within consumer.leave.grace.ms"
"""What there is to say of a member whose grace period has ended."""
REBALANCE_TIMEOUT: Final = WhyRemoved(CauseKind.REBALANCE_TIMEOUT)


def handle_leave(shard: Shard, command: ConsumerGroupLeave, now: Now) -> Outcome:
    """Handle a heartbeat with epoch -1 (leave) or -2 (temporary leave of a static member).

    Raises the errors of rows C11, C13 and C16 (tests/scenarios/README.md).
    """
    group = shard.consumer_groups.get(command.group_id)
    if group is None:
        if shard.has_other_group(command.group_id):
            raise GroupIdNotFound(f"Group {command.group_id} is not a consumer group.")
        raise GroupIdNotFound(f"Group {command.group_id} not found.")
    member = find_leaving_member(group, command.member_id, command.instance_id)
    response = ConsumerGroupLeaveResponse(command.member_id, command.member_epoch)
    if command.member_epoch == STATIC_LEAVE_EPOCH and command.instance_id is not None:
        return Outcome(
            records=(compute_static_leave(group, member),),
            response=response,
            effects=(CancelRebalanceTimeout(group.group_id, member.member_id),),
        )
    if member.is_reserved:
        raise compute_unknown_member(command.group_id, command.member_id)
    return _compute_departure_or_grace(shard, group, member, now, response, LEFT)


def _compute_departure_or_grace(
    shard: Shard,
    group: ConsumerGroup,
    member: Member,
    now: Now,
    response: Response,
    why: WhyRemoved,
    *,
    silent_ms: int | None = None,
) -> Outcome:
    """Reserve the member's partitions, or remove it; a downgrade does not wait for a newcomer.

    ``silent_ms`` is how long nothing had been heard from it; ``None`` if it leaves.
    """
    if is_to_reserve(shard, group, member) and not is_to_downgrade(
        shard, group, frozenset((member.member_id,))
    ):
        return compute_reservation(shard, group, member, response, silent_ms)
    return compute_departure(shard, group, (member,), now, response, why)


def handle_leave_group(shard: Shard, command: LeaveGroup, now: Now) -> Outcome:
    """Handle LeaveGroup: remove members by member id or instance id, each with its own result.

    They share one bump of the group epoch. If there is no group, each member is unknown (rows L1
    and T10).
    """
    group = shard.consumer_groups.get(command.group_id)
    classic = shard.classic_group(command.group_id)
    if group is None and classic is not None:
        return handle_classic_leave(shard, classic, command, now)
    if group is None:
        errors = (ErrorCode.UNKNOWN_MEMBER_ID,) * len(command.members)
        return Outcome(response=LeaveGroupResponse(errors))
    found: dict[MemberId, Member] = {}
    reasons: dict[MemberId, str | None] = {}
    kinds = set()
    results = []
    for leaving in command.members:
        result = _find(group, leaving)
        if isinstance(result, ErrorCode):
            results.append(result)
            continue
        found[result.member_id] = result
        reasons[result.member_id] = leaving.reason
        kinds.add(compute_leave_kind(leaving))
        results.append(ErrorCode.NONE)
    response = LeaveGroupResponse(tuple(results))
    if not found:
        return Outcome(response=response)
    kind = kinds.pop() if len(kinds) == 1 else CauseKind.MEMBER_LEFT
    why = WhyRemoved(kind, reasons)
    return compute_departure(shard, group, tuple(found.values()), now, response, why)


def _find(group: ConsumerGroup, leaving: LeavingMember) -> Member | ErrorCode:
    try:
        return find_leaving_member(group, leaving.member_id, leaving.instance_id)
    except GroupError as error:
        return error.code


def find_leaving_member(
    group: ConsumerGroup, member_id: MemberId | None, instance_id: InstanceId | None
) -> Member:
    """The member by its id, or by its instance id. Raises ``UnknownMemberId`` and the like."""
    group_id = group.group_id
    if instance_id is not None:
        holder = group.static_member(instance_id)
        return check_static_member(holder, instance_id, group_id, member_id)
    member = None if member_id is None else group.member(member_id)
    if member is None:
        raise compute_unknown_member(group_id, member_id)
    return member


def compute_departure(
    shard: Shard,
    group: ConsumerGroup,
    members: Sequence[Member],
    now: Now,
    response: Response,
    why: WhyRemoved,
) -> Outcome:
    """Remove members; downgrade the group if the last consumer-protocol member is among them."""
    gone = frozenset(member.member_id for member in members)
    if is_to_downgrade(shard, group, gone):
        return compute_downgrade(shard, group, gone, now, response)
    records, effects = compute_removal(shard, group, members, why)
    return Outcome(records=records, response=response, effects=effects)


def handle_expire_member(shard: Shard, command: ExpireMember, now: Now) -> Outcome:
    """Remove the member if the deadline still applies.

    A rebalance deadline applies while the member has not left the epoch in which it had to revoke
    partitions (Kafka's timer compares the member epoch, too).
    """
    group = shard.consumer_groups.get(command.group_id)
    member = group.member(command.member_id) if group is not None else None
    if group is None or member is None:
        return Outcome(response=Done())
    if command.deadline is Deadline.REBALANCE and (
        member.member_epoch != command.member_epoch
        or member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        return Outcome(response=Done())
    if command.deadline is Deadline.SESSION:
        if member.is_reserved:
            kind = CauseKind.MEMBER_LEFT if command.has_left else CauseKind.SESSION_EXPIRED
            why = WhyRemoved(kind, {member.member_id: NOT_REPLACED})
        else:
            why = SESSION_EXPIRED
        silent_ms = command.silent_ms or 0
        return _compute_departure_or_grace(
            shard, group, member, now, Done(), why, silent_ms=silent_ms
        )
    return compute_departure(shard, group, (member,), now, Done(), REBALANCE_TIMEOUT)
