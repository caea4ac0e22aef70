"""Members leave classic groups: LeaveGroup, removal by an administrator, and deadlines.

It follows Kafka's ``classicGroupLeaveToClassicGroup``, ``expireClassicGroupMemberHeartbeat`` and
``expirePendingSync``. Rows L1 and L2 are those of tests/scenarios/README.md.
"""

from __future__ import annotations

from typing import Final

from coordinator.core.classic.classic_causes import compute_classic_cause
from coordinator.core.classic.classic_draft import GROUP, ClassicDraft
from coordinator.core.classic.classic_members import check_member
from coordinator.core.classic.classic_rebalance import (
    compute_late_members,
    end_join_phase,
    rebalance,
)
from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.classic.classic_states import ClassicEvent
from coordinator.core.state.epoch_causes import compute_leave_kind
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.classic import ClassicDeadline, ExpireClassicDeadline
from model.commands.consumer import LeaveGroup, LeavingMember
from model.errors import ErrorCode, GroupError, UnknownMemberId
from model.ids import MemberId
from model.now import Now
from model.past.causes import Cause, CauseKind
from model.responses.classic import LeaveGroupResponse
from model.responses.response import Done

LATE_AT_ONCE_MAX: Final = 200
"""Above this number, late members are removed in an event-loop iteration of their own."""


def handle_classic_leave(
    shard: Shard, group: ClassicGroup, command: LeaveGroup, now: Now
) -> Outcome:
    """Remove members, each with its own result; the remaining members rebalance once."""
    draft = ClassicDraft(group, now)
    results, gone = [], []
    cause: Cause | None = None
    for leaving in command.members:
        try:
            member_id = find_leaving(draft, leaving)
        except GroupError as error:
            results.append(error.code)
            continue
        if cause is None:
            left = draft.members.get(member_id)
            cause = compute_classic_cause(
                compute_leave_kind(leaving), member_id, left, leaving.reason
            )
        draft.remove(member_id)
        gone.append(f"{member_id} ({leaving.reason or 'not provided'})")
        results.append(ErrorCode.NONE)
    response = LeaveGroupResponse(tuple(results))
    if cause is None:
        return Outcome(response=response)
    settings = shard.settings_of(group.group_id)
    rebalance(draft, settings, ClassicEvent.GONE, (f"left: {', '.join(gone)}", cause))
    return draft.finish(response)


def find_leaving(group: ClassicGroup | ClassicDraft, leaving: LeavingMember) -> MemberId:
    """The member to remove, by member id, instance id, or a handed-out member id not used yet."""
    member_id, instance_id = leaving.member_id, leaving.instance_id
    if not member_id:
        holder = None if instance_id is None else group.instances.get(instance_id)
        if holder is None:
            raise UnknownMemberId(
                f"Instance id {instance_id} is unknown in group {group.group_id}."
            )
        return holder
    if member_id in group.pending_members:
        return member_id
    return check_member(group, member_id, instance_id).member_id


def handle_expire_classic_deadline(
    shard: Shard, command: ExpireClassicDeadline, now: Now
) -> Outcome:
    """Act on an expired deadline, if it still applies.

    A JOIN or SYNC deadline of a classic group has no member. One with a member belongs to a classic
    member of a consumer group that was downgraded after the deadline expired: the phase that the
    downgrade began has its full time, so ignore it.
    """
    group = shard.classic_group(command.group_id)
    is_phase = command.deadline in (ClassicDeadline.JOIN, ClassicDeadline.SYNC)
    if group is None or (is_phase and command.member_id != GROUP):
        return Outcome(response=Done())
    match command.deadline:
        case ClassicDeadline.SESSION:
            return _expire_session(shard, group, command.member_id, now)
        case ClassicDeadline.JOIN:
            return _expire_join(shard, group, now)
        case ClassicDeadline.SYNC:
            return _expire_sync(shard, group, now)
        case ClassicDeadline.SIZE:
            return _check_size(shard, group, now)


def _expire_session(shard: Shard, group: ClassicGroup, member_id: MemberId, now: Now) -> Outcome:
    """Remove a member whose session expired, unless its request is parked.

    A new member is removed even then: it does not know its member id and may never come back.
    """
    member = group.members.get(member_id)
    is_pending = member_id in group.pending_members
    if not is_pending and (member is None or (member.awaits is not None and not member.is_new)):
        return Outcome(response=Done())
    draft = ClassicDraft(group, now)
    settings = shard.settings_of(group.group_id)
    draft.remove(member_id)
    if member is not None or group.state is ClassicGroupState.PREPARING_REBALANCE:
        reason = f"the session of member {member_id} expired"
        cause = compute_classic_cause(CauseKind.SESSION_EXPIRED, member_id, member)
        rebalance(draft, settings, ClassicEvent.GONE, (reason, cause))
    return draft.finish(Done())


def _expire_join(shard: Shard, group: ClassicGroup, now: Now) -> Outcome:
    """End the join phase; very many late members are removed first, in their own iteration."""
    if group.state is not ClassicGroupState.PREPARING_REBALANCE:
        return Outcome(response=Done())
    draft = ClassicDraft(group, now)
    late = compute_late_members(draft)
    if len(late) > LATE_AT_ONCE_MAX:
        for member_id in late:
            draft.remove(member_id)
        draft.arm(ClassicDeadline.JOIN, 0)
    else:
        end_join_phase(draft, shard.settings_of(group.group_id))
    return draft.finish(Done())


def _check_size(shard: Shard, group: ClassicGroup, now: Now) -> Outcome:
    """Rebalance a group above its maximum size; members that rejoin once it is full are refused."""
    settings = shard.settings_of(group.group_id)
    if len(group.members) <= settings.group_max_size:
        return Outcome(response=Done())
    draft = ClassicDraft(group, now)
    reason = f"the group was loaded with more than {settings.group_max_size} members"
    cause = Cause(CauseKind.ADMINISTRATOR, reason=reason)
    rebalance(draft, settings, ClassicEvent.TOO_LARGE, (reason, cause))
    return draft.finish(Done())


def _expire_sync(shard: Shard, group: ClassicGroup, now: Now) -> Outcome:
    """Remove the members that did not send SyncGroup in time, and rebalance."""
    if not group.pending_syncs:
        return Outcome(response=Done())
    draft = ClassicDraft(group, now)
    late = [member_id for member_id in group.members if member_id in group.pending_syncs]

    def remove() -> None:
        for member_id in late:
            draft.remove(member_id)

    reason = f"no SyncGroup in time from {', '.join(late)}"
    settings = shard.settings_of(group.group_id)
    first = late[0] if late else GROUP
    known = group.members.get(first)
    cause = compute_classic_cause(CauseKind.REBALANCE_TIMEOUT, first, known, "no SyncGroup in time")
    rebalance(draft, settings, ClassicEvent.SYNC_TIMEOUT, (reason, cause), change=remove)
    return draft.finish(Done())
