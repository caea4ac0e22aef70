"""SyncGroup and Heartbeat on a consumer group, and the deadlines of its classic members.

It follows Kafka's ``classicGroupSyncToConsumerGroup`` and ``classicGroupHeartbeatToConsumerGroup``.
Rows T4 to T9 and T11.
"""

from __future__ import annotations

from coordinator.core.consumer.pending_changes import has_to_rejoin
from coordinator.core.consumer.static_members import check_static_member
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.group_epochs import compute_target_effects
from coordinator.core.state.outcome import ArmClassicDeadline, CancelClassicDeadline, Outcome
from coordinator.core.state.reset_of_group import compute_withheld
from coordinator.core.state.shard import Shard
from model.commands.classic import (
    ClassicDeadline,
    ClassicHeartbeat,
    ExpireClassicDeadline,
    SyncGroup,
)
from model.errors import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import GroupId
from model.log.records import ClassicMemberMetadata, ClassicProtocol, MemberState
from model.now import Now
from model.responses.classic import ClassicHeartbeatResponse
from model.responses.response import Done
from translator.departure import REBALANCE_TIMEOUT, SESSION_EXPIRED, compute_departure
from translator.mapping import compute_sync_answer, get_protocol, get_protocol_name

_REJOIN = "The group is rebalancing, so a rejoin is needed."
_PARKS_IN_A_SESSION = 3
"""A heartbeat is parked for at most a third of the session timeout, the interval that Kafka's
documentation recommends for ``heartbeat.interval.ms``."""


def handle_sync_of_classic_member(
    shard: Shard, group: ConsumerGroup, command: SyncGroup
) -> Outcome:
    """Answer with the member's assignment, or REBALANCE_IN_PROGRESS if it is behind the target."""
    member, classic = _check_member(group, command)
    protocol = _check_protocol(classic, command)
    is_giving_up = member.state is MemberState.UNREVOKED_PARTITIONS
    if member.member_epoch < group.target_epoch and not is_giving_up:
        effects = (_await_join(group, member),)
        return Outcome(response=RebalanceInProgress(_REJOIN), effects=effects)
    return Outcome(
        response=compute_sync_answer(group, member, protocol, shard.image),
        effects=(
            CancelClassicDeadline(group.group_id, ClassicDeadline.SYNC, member.member_id),
            _renew(group, member, classic),
        ),
    )


def handle_heartbeat_of_classic_member(
    shard: Shard, group: ConsumerGroup, command: ClassicHeartbeat, now: Now
) -> Outcome:
    """Renew the session; REBALANCE_IN_PROGRESS if the member must rejoin to reconcile."""
    member, classic = _check_member(group, command)
    effects = compute_target_effects(shard, group, group.group_id, False, now)
    if not command.by_server:
        effects = (_renew(group, member, classic), *effects)
    if not has_to_rejoin(group, member, compute_withheld(shard, group)):
        response = ClassicHeartbeatResponse(classic.session_timeout_ms // _PARKS_IN_A_SESSION)
        return Outcome(response=response, effects=effects)
    effects = (*effects, _await_join(group, member))
    return Outcome(response=RebalanceInProgress(_REJOIN), effects=effects)


def _check_member(
    group: ConsumerGroup, command: SyncGroup | ClassicHeartbeat
) -> tuple[Member, ClassicMemberMetadata]:
    """The requesting member, a classic one with the generation of the request (rows T4, T5, T9)."""
    member_id, instance_id = command.member_id, command.instance_id
    if instance_id is None:
        found = group.member(member_id)
        if found is None:
            raise compute_unknown_member(group.group_id, member_id)
    else:
        holder = group.static_member(instance_id)
        found = check_static_member(holder, instance_id, group.group_id, member_id)
    if found.classic is None or found.member_epoch < 0:
        raise UnknownMemberId(
            f"Member {member_id} of group {group.group_id} does not use the classic protocol."
        )
    if command.generation != found.member_epoch:
        raise IllegalGeneration(
            f"The generation {command.generation} of the request does not match the member epoch "
            f"{found.member_epoch}."
        )
    return found, found.classic


def _check_protocol(classic: ClassicMemberMetadata, command: SyncGroup) -> ClassicProtocol:
    """Raise ``InconsistentGroupProtocol`` if the request names another protocol (row T5)."""
    if command.protocol_type not in (None, PROTOCOL_TYPE):
        raise InconsistentGroupProtocol(
            f"The protocol type {command.protocol_type} does not match the protocol type "
            f"{PROTOCOL_TYPE} of the group."
        )
    protocol = get_protocol(classic, command.protocol_name)
    if protocol is None:
        raise InconsistentGroupProtocol(
            f"The protocol {command.protocol_name} does not match the protocol "
            f"{get_protocol_name(classic)} of the member."
        )
    return protocol


# ----------------------------------------------------------------------------------- deadlines


def _renew(
    group: ConsumerGroup, member: Member, classic: ClassicMemberMetadata
) -> ArmClassicDeadline:
    return ArmClassicDeadline(
        group.group_id, ClassicDeadline.SESSION, member.member_id, classic.session_timeout_ms
    )


def _await_join(group: ConsumerGroup, member: Member) -> ArmClassicDeadline:
    """The deadline of a rejoin: the rebalance timeout, from the first such answer on (row T11)."""
    assert member.metadata is not None, "a classic member has metadata"
    timeout_ms = member.metadata.rebalance_timeout_ms
    return ArmClassicDeadline(
        group.group_id, ClassicDeadline.JOIN, member.member_id, timeout_ms, stays=True
    )


def compute_deadlines_at_load(group_id: GroupId, member: Member) -> tuple[ArmClassicDeadline, ...]:
    """The deadlines of a classic member on load; none for a consumer-protocol member."""
    classic, metadata = member.classic, member.metadata
    if classic is None or metadata is None:
        return ()
    member_id, session = member.member_id, ClassicDeadline.SESSION
    deadlines = [ArmClassicDeadline(group_id, session, member_id, classic.session_timeout_ms)]
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        join, timeout_ms = ClassicDeadline.JOIN, metadata.rebalance_timeout_ms
        deadlines.append(ArmClassicDeadline(group_id, join, member_id, timeout_ms))
    return tuple(deadlines)


def handle_expire_classic_member(
    shard: Shard, group: ConsumerGroup, command: ExpireClassicDeadline, now: Now
) -> Outcome:
    """Remove a classic member whose session, JoinGroup or SyncGroup deadline expired."""
    member = group.member(command.member_id)
    if member is None or member.classic is None:
        return Outcome(response=Done())
    is_session = command.deadline is ClassicDeadline.SESSION
    why = SESSION_EXPIRED if is_session else REBALANCE_TIMEOUT
    return compute_departure(shard, group, (member,), now, Done(), why)
