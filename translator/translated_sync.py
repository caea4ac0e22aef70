"""SyncGroup and Heartbeat on a consumer group, and what ends the stay of its classic members.

Facts of Kafka's ``classicGroupSyncToConsumerGroup`` and ``classicGroupHeartbeatToConsumerGroup``.
Rows T4 to T9 and T11.
"""

from __future__ import annotations

from coordinator.core.consumer.pending_changes import has_to_rejoin
from coordinator.core.consumer.static_members import check_static_member
from coordinator.core.state.consumer_group import ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer_member import Member
from coordinator.core.state.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.group_epochs import compute_target_effects
from coordinator.core.state.outcome import ArmClassicDeadline, CancelClassicDeadline, Outcome
from coordinator.core.state.shard import Shard
from model.commands import (
    ClassicDeadline,
    ClassicHeartbeat,
    ExpireClassicDeadline,
    Now,
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
from model.responses import ClassicHeartbeatResponse, Done
from translator.departure import compute_departure
from translator.mapping import compute_sync_answer, get_protocol, get_protocol_name

_REJOIN = "The member has to join again."
_PARKS_IN_A_SESSION = 3
"""A heartbeat is held back for no longer than clients are told to have between two of them."""


def handle_sync_of_classic_member(
    shard: Shard, group: ConsumerGroup, command: SyncGroup
) -> Outcome:
    """Hand out what is assigned to the member, unless it is behind the target."""
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
    """The member is alive, and is told where it has a step to take."""
    member, classic = _check_member(group, command)
    effects = compute_target_effects(shard, group, group.group_id, False, now)
    if not command.by_server:
        effects = (_renew(group, member, classic), *effects)
    if not has_to_rejoin(group, member):
        response = ClassicHeartbeatResponse(classic.session_timeout_ms // _PARKS_IN_A_SESSION)
        return Outcome(response=response, effects=effects)
    effects = (*effects, _await_join(group, member))
    return Outcome(response=RebalanceInProgress(_REJOIN), effects=effects)


def _check_member(
    group: ConsumerGroup, command: SyncGroup | ClassicHeartbeat
) -> tuple[Member, ClassicMemberMetadata]:
    """Who asks, which has to be a classic member, of its generation. Rows T4, T5, T9."""
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
            f"Member {member_id} of group {group.group_id} does not speak the classic protocol."
        )
    if command.generation != found.member_epoch:
        raise IllegalGeneration(
            f"The member is at epoch {found.member_epoch}, the request is of generation "
            f"{command.generation}."
        )
    return found, found.classic


def _check_protocol(classic: ClassicMemberMetadata, command: SyncGroup) -> ClassicProtocol:
    """Row T5: what the member says of the protocol is what it was told."""
    if command.protocol_type not in (None, PROTOCOL_TYPE):
        raise InconsistentGroupProtocol(
            f"The protocol type is {PROTOCOL_TYPE}, and not {command.protocol_type}."
        )
    protocol = get_protocol(classic, command.protocol_name)
    if protocol is None:
        raise InconsistentGroupProtocol(
            f"The protocol of the member is {get_protocol_name(classic)}, and not "
            f"{command.protocol_name}."
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
    """Row T11: from when it was told first, the member has its rebalance timeout to join again."""
    assert member.metadata is not None, "it was asked what it speaks"
    timeout_ms = member.metadata.rebalance_timeout_ms
    return ArmClassicDeadline(
        group.group_id, ClassicDeadline.JOIN, member.member_id, timeout_ms, stays=True
    )


def compute_deadlines_at_load(group_id: GroupId, member: Member) -> tuple[ArmClassicDeadline, ...]:
    """What runs for a classic member from a start on; nothing for one of the consumer protocol."""
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
    """Remove the member that was not heard from, did not join again, or did not sync."""
    member = group.member(command.member_id)
    if member is None or member.classic is None:
        return Outcome(response=Done())
    return compute_departure(shard, group, (member,), now, Done())
