"""ConsumerGroupHeartbeat (KIP-848): join, change, acknowledge.

A heartbeat that changes the group is handled in two steps, and the target of the new epoch is
computed in between: the first step writes the member and the group epoch, the continuation
(``handle_reconcile_member``) reconciles the member and makes the response. A heartbeat that changes
nothing in the group is handled in one step.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinator.core.client_assignors.declaration import (
    NO_CLIENT_ASSIGNOR_CHANGE,
    compute_client_assignor_change,
    compute_told_assignment,
)
from coordinator.core.consumer.heartbeat_checks import (
    check_member_epoch,
    check_room,
    check_server_assignor,
    find_group,
)
from coordinator.core.consumer.leave_grace import find_reserved
from coordinator.core.consumer.member_metadata import compute_updated_metadata
from coordinator.core.consumer.reconcile import (
    AssignmentState,
)
from coordinator.core.consumer.state_after import compute_state_after
from coordinator.core.consumer.static_members import compute_replacement, find_member
from coordinator.core.consumer.told_tokens import begins_again, compute_tokens, get_held
from coordinator.core.state.consumer.consumer_group import NOTHING_SAID, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Member
from coordinator.core.state.epoch_causes import note_change
from coordinator.core.state.group_epochs import (
    compute_epoch_bump,
    compute_replaced_group,
    compute_target_effects,
)
from coordinator.core.state.outcome import (
    ArmRebalanceTimeout,
    CancelRebalanceTimeout,
    Effect,
    Outcome,
    ResolveRegexes,
)
from coordinator.core.state.shard import Shard
from coordinator.core.subscriptions.regex_changes import compute_names_after, compute_regex_change
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, ReconcileMember
from model.errors import UnknownMemberId
from model.ids import MemberId
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    MemberState,
    Record,
    TopicPartitions,
)
from model.now import Now
from model.responses.consumer import ConsumerGroupHeartbeatResponse

# --------------------------------------------------------------------------------- first step


def handle_heartbeat(shard: Shard, command: ConsumerGroupHeartbeat, now: Now) -> Outcome:
    """Handle a heartbeat with a member epoch of 0 or more.

    Raises the errors of rows C8 to C16 (tests/scenarios/README.md).
    """
    check_server_assignor(shard, command)
    group = find_group(shard, command)
    reserved = find_reserved(group, command)
    if reserved is not None:
        updated = compute_updated_metadata(reserved, command)
        return change_member(shard, group, reserved, updated, command, now, returns=True)
    check_room(shard, group, command.member_id)
    member, returns = find_member(group, command)
    if group is not None and member is not None and not returns:
        check_member_epoch(group, member, command)
    updated = compute_updated_metadata(member, command)
    if (
        group is not None
        and member is not None
        and not returns
        and updated == member.metadata
        and compute_client_assignor_change(shard, group, member, command, returns)
        is NO_CLIENT_ASSIGNOR_CHANGE
    ):
        return continue_member(shard, group, member, command, now)
    return change_member(shard, group, member, updated, command, now, returns=returns)


def change_member(
    shard: Shard,
    group: ConsumerGroup | None,
    member: Member | None,
    updated: ConsumerGroupMemberMetadataValue,
    command: ConsumerGroupHeartbeat,
    now: Now,
    *,
    returns: bool,
) -> Outcome:
    """Handle a join, a change of metadata, or (``returns``) the replacement of ``member``.

    ``updated`` is the member's new metadata, whichever protocol it uses.
    """
    group_id, member_id = command.group_id, command.member_id
    old = member.metadata if member is not None and member.metadata is not None else NOTHING_SAID
    names_changed = updated.subscribed_topic_names != old.subscribed_topic_names
    regex = compute_regex_change(shard, group, group_id, old, updated)
    local = compute_client_assignor_change(shard, group, member, command, returns)
    records = list(compute_replaced_group(shard, group_id)) if group is None else []
    if returns and group is not None and member is not None:
        records += compute_replacement(group, member, member_id)
    if not returns or updated != old:
        records.append(Record(ConsumerGroupMemberMetadataKey(group_id, member_id), updated))
    records += regex.records
    is_bumped = names_changed or regex.bumps or local.is_bumped
    if is_bumped:
        names = compute_names_after(group, (old,), (updated,))
        records += compute_epoch_bump(shard, group, group_id, names)
    effects = compute_target_effects(shard, group, group_id, is_bumped, now)
    if is_bumped:
        is_subscription = names_changed or regex.bumps
        effects = (*effects, note_change(group_id, member_id, member, updated, is_subscription))
    if regex.resolves:
        effects = (*effects, ResolveRegexes(group_id))
    return Outcome(
        records=tuple(records),
        effects=effects,
        then=_reconcile_command(member, command, names_changed or regex.is_changed, returns),
        side=local.side,
    )


def _reconcile_command(
    member: Member | None,
    command: ConsumerGroupHeartbeat,
    has_subscription_changed: bool,
    is_new: bool = False,
) -> ReconcileMember:
    return ReconcileMember(
        command.caller,
        command.group_id,
        command.member_id,
        owned=command.owned,
        full=_wants_assignment(command),
        has_subscription_changed=has_subscription_changed,
        before=tuple(member.assigned) if member is not None else (),
        epoch_before=command.member_epoch,
        epoch_known=JOIN_EPOCH if member is None or is_new else member.member_epoch,
        keeps_assigned=command.keeps_assigned and not has_subscription_changed,
    )


def _wants_assignment(command: ConsumerGroupHeartbeat) -> bool:
    """A join, or a full request: the client may not know its assignment."""
    return (
        command.wants_assignment
        or command.member_epoch == JOIN_EPOCH
        or (
            command.rebalance_timeout_ms is not UNCHANGED
            and (
                command.subscribed_topic_names is not UNCHANGED
                or command.subscribed_topic_regex is not UNCHANGED
            )
            and command.owned is not None
        )
    )


def continue_member(
    shard: Shard,
    group: ConsumerGroup,
    member: Member,
    command: ConsumerGroupHeartbeat,
    now: Now,
) -> Outcome:
    """Reconcile the member at once: the heartbeat changes nothing in the group.

    The subscription still counts as changed while a regular expression of the member is not
    resolved: it bumped no epoch, and the heartbeat that sent it may still wait for its
    continuation.
    """
    has_subscription_changed = group.waits_for_regex(member)
    if group.target_epoch < group.group_epoch:
        return Outcome(
            effects=compute_target_effects(shard, group, command.group_id, False, now),
            then=_reconcile_command(member, command, has_subscription_changed),
        )
    if (
        member.is_reconciled_to(group.target_epoch)
        and not has_subscription_changed
        and not begins_again(member, command.member_epoch)
    ):
        return Outcome(
            response=_response(
                shard,
                group,
                member,
                member,
                command.member_epoch,
                kept=get_held(member),
                assigned=tuple(member.assigned) if _wants_assignment(command) else None,
                owned=command.owned,
            )
        )
    return handle_reconcile_member(
        shard, _reconcile_command(member, command, has_subscription_changed), now
    )


# ------------------------------------------------------------------------------- continuation


def handle_reconcile_member(shard: Shard, command: ReconcileMember, now: Now) -> Outcome:
    """Reconcile the member as far as possible, and make the response to its heartbeat."""
    group = shard.consumer_groups.get(command.group_id)
    member = group.member(command.member_id) if group is not None else None
    if group is None or member is None:
        raise UnknownMemberId(
            f"Member {command.member_id} is not a member of group {command.group_id}."
        )
    if member.member_epoch == STATIC_LEAVE_EPOCH:
        raise UnknownMemberId(f"Member {command.member_id} has left group {command.group_id}.")
    current = assignment_state_of(group, member)
    following = current
    if command.has_subscription_changed or not member.is_reconciled_to(group.target_epoch):
        following = compute_state_after(shard, group, member, current, command)
    if command.keeps_assigned and not current.assigned.keys() <= following.assigned.keys():
        # A client that never learned of a partition does not acknowledge its revocation: it already
        # owns exactly the remaining partitions, and sends no change (librdkafka 2.16).
        following = current
    moved = following is not current and following != current
    is_new = begins_again(member, command.epoch_before)
    assigned = tuple(sorted(following.assigned)) if moved else tuple(member.assigned)
    response = _response(
        shard,
        group,
        member,
        following,
        command.epoch_before,
        kept=() if is_new else get_held(member),
        assigned=assigned if command.full or assigned != command.before else None,
        owned=command.owned,
    )
    if not (moved or is_new):
        return Outcome(response=response)
    record = current_assignment_record(group, member.member_id, following)
    records: tuple[Record, ...] = (record,)
    if is_new:
        # It ends the former incarnation, which may still run: see ``core.replay.token_records``.
        records = (Record(record.key, None), record)
    return Outcome(
        records=records,
        response=response,
        effects=_timeout_effects(group, member, current, following),
    )


def assignment_state_of(group: ConsumerGroup, member: Member) -> AssignmentState:
    """The member's assignment state, with the assignment epoch of each partition."""
    epoch_of = group.assignment_epoch_of
    return AssignmentState(
        member.member_epoch,
        member.previous_member_epoch,
        member.state,
        {number: epoch_of[number] for number in member.assigned},
        {number: epoch_of[number] for number in member.pending_revocation},
    )


def current_assignment_record(
    group: ConsumerGroup, member_id: MemberId, current: AssignmentState
) -> Record:
    """The current assignment record (type 8) of a member."""
    numbers = group.numbers
    return Record(
        ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            current.member_epoch,
            current.previous_member_epoch,
            int(current.state),
            numbers.assigned_topic_partitions(current.assigned),
            numbers.assigned_topic_partitions(current.pending_revocation),
        ),
    )


def _timeout_effects(
    group: ConsumerGroup, member: Member, current: AssignmentState, following: AssignmentState
) -> tuple[Effect, ...]:
    """Arm the rebalance timeout when a revocation begins, cancel it when it is acknowledged.

    Partitions that a change of subscription adds to a revocation in progress do not extend it.
    Classic members have other deadlines.
    """
    if member.classic is not None:
        return ()
    was_revoking = current.state is MemberState.UNREVOKED_PARTITIONS
    if following.state is not MemberState.UNREVOKED_PARTITIONS:
        if not was_revoking:
            return ()
        return (CancelRebalanceTimeout(group.group_id, member.member_id),)
    if was_revoking and current.pending_revocation.keys() <= following.pending_revocation.keys():
        return ()
    timeout_ms = member.metadata.rebalance_timeout_ms if member.metadata is not None else 0
    return (
        ArmRebalanceTimeout(group.group_id, member.member_id, following.member_epoch, timeout_ms),
    )


_PARKABLE = (MemberState.STABLE, MemberState.UNRELEASED_PARTITIONS)


def _response(
    shard: Shard,
    group: ConsumerGroup,
    member: Member,
    after: Member | AssignmentState,
    epoch_before: int,
    *,
    kept: Collection[int],
    assigned: tuple[int, ...] | None,
    owned: tuple[TopicPartitions, ...] | None,
) -> ConsumerGroupHeartbeatResponse:
    """The response; ``after`` is the assignment state that it reports, unchanged or new.

    ``kept`` are the partitions that do not pass to the member by it.
    """
    member_epoch, state = after.member_epoch, after.state
    assignment: tuple[TopicPartitions, ...] | None = None
    tokens: tuple[tuple[int, ...], ...] = ()
    is_known = True
    if assigned is not None:
        assignment = group.numbers.topic_partitions(assigned)
        tokens = compute_tokens(shard, group, assigned, kept)
        is_known = owned is not None and group.numbers.known_numbers(owned) == set(assigned)
    settings = shard.settings_of(group.group_id)
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        assignment=assignment,
        has_changes=not is_known or member_epoch != epoch_before,
        parkable=state in _PARKABLE,
        settled=state is MemberState.STABLE and group.target_epoch == member_epoch,
        client_assignment=(
            None
            if group.client_assignor_state is None
            else compute_told_assignment(group, member, member_epoch)
        ),
        tokens=tokens,
    )
