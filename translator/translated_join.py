"""JoinGroup on a consumer group, which is answered without waiting for other members.

It follows Kafka's ``classicGroupJoinToConsumerGroup``. Rows T1 to T3 and T11.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.core.classic.classic_join import handle_join_of_downgraded_member
from coordinator.core.consumer.heartbeat import (
    change_member,
    continue_member,
    handle_reconcile_member,
)
from coordinator.core.consumer.heartbeat_checks import check_room
from coordinator.core.consumer.static_members import check_static_member
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Member
from coordinator.core.state.outcome import (
    ArmClassicDeadline,
    CancelClassicDeadline,
    Effect,
    Outcome,
)
from coordinator.core.state.shard import Shard
from model.commands.classic import ClassicDeadline, JoinGroup
from model.commands.consumer import ReconcileMember
from model.errors import (
    FencedMemberEpoch,
    InconsistentGroupProtocol,
    InvalidRequest,
    MemberIdRequired,
    UnknownMemberId,
)
from model.ids import GroupId
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataValue,
)
from model.now import Now
from model.responses.classic import JoinGroupResponse
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from translator.downgrade import Replacement, compute_downgrade, is_to_downgrade
from translator.mapping import (
    compute_heartbeat,
    compute_join_answer,
    compute_metadata,
    compute_owned,
    compute_subscription,
    get_protocol_name,
    supports_protocols,
)


def handle_join_of_classic_member(
    shard: Shard, group: ConsumerGroup, command: JoinGroup, now: Now
) -> Outcome:
    """Add or update the member, and reconcile it as far as possible."""
    member_id = command.new_member_id if command.member_id is None else command.member_id
    check_room(shard, group, member_id)
    if not supports_protocols(group, command):
        raise InconsistentGroupProtocol(
            f"The protocol type {command.protocol_type} or the protocols of the member "
            f"({', '.join(each.name for each in command.protocols)}) are incompatible with those "
            f"of group {group.group_id}."
        )
    subscription = compute_subscription(command)
    limit = shard.settings.group_subscriptions_max
    if len(subscription.topics) > limit:
        raise InvalidRequest(f"A member cannot subscribe to more than {limit} topics.")
    is_new = command.member_id is None and command.instance_id is None
    if is_new and command.requires_member_id:
        raise MemberIdRequired(f"The member must rejoin with member id {member_id}.", member_id)
    member, takes_place = _find_member(group, command)
    if member is None and command.member_id is not None and subscription.owned_partitions:
        # It was a member, and was removed: what it believes to own may be another's by now, and
        # only this error makes it give that up. Whoever was just given its id owns nothing.
        raise UnknownMemberId(f"Member {member_id} was removed from group {group.group_id}.")
    metadata = compute_metadata(None if member is None else member.metadata, command, subscription)
    if member is not None and member.classic is None:
        replacement = Replacement(member_id, metadata, member)
        downgraded = _compute_downgrade(shard, group, replacement, now)
        if downgraded is not None:
            return downgraded
    owned = compute_owned(subscription, None if takes_place else member, shard.image)
    heartbeat = compute_heartbeat(command, member_id, metadata, owned)
    if member is not None and not takes_place and metadata == member.metadata:
        outcome = continue_member(shard, group, member, heartbeat, now)
    else:
        outcome = change_member(shard, group, member, metadata, heartbeat, now, returns=takes_place)
    return _translate(group.group_id, outcome, metadata)


def _find_member(group: ConsumerGroup, command: JoinGroup) -> tuple[Member | None, bool]:
    """The member that joins (``None`` for a new one), and whether the join replaces it (row T2).

    A static member that joins without a member id replaces its predecessor, even a live one. A
    dynamic member may join with any member id: handed-out ids (KIP-394) are not tracked.
    """
    if command.instance_id is None:
        known = None if command.member_id is None else group.member(command.member_id)
        return known, known is not None and known.member_epoch == STATIC_LEAVE_EPOCH
    holder = group.static_member(command.instance_id)
    if command.member_id is None:
        return holder, holder is not None
    holder = check_static_member(holder, command.instance_id, group.group_id, command.member_id)
    return holder, holder.member_epoch == STATIC_LEAVE_EPOCH


def _compute_downgrade(
    shard: Shard, group: ConsumerGroup, replacement: Replacement, now: Now
) -> Outcome | None:
    """Downgrade the group if the replacement replaces its last consumer-protocol member.

    The next heartbeat of the member gets the rebalance that the classic group begins
    (KAFKA-17317).
    """
    gone = (replacement.replaced.member_id,)
    if not is_to_downgrade(shard, group, gone, replacement):
        return None
    classic = replacement.metadata.classic_member_metadata
    assert classic is not None, "it joins by JoinGroup"
    response = JoinGroupResponse(
        replacement.member_id,
        group.group_epoch,
        PROTOCOL_TYPE,
        get_protocol_name(classic),
        leader=None,
    )
    return compute_downgrade(shard, group, gone, now, response, replacement)


def _translate(
    group_id: GroupId, outcome: Outcome, metadata: ConsumerGroupMemberMetadataValue
) -> Outcome:
    """Turn the outcome of the heartbeat into that of a JoinGroup."""
    if outcome.then is not None:
        return replace(outcome, then=replace(outcome.then, by_join_group=True))
    response = outcome.response
    assert isinstance(response, ConsumerGroupHeartbeatResponse), "it is a heartbeat's response"
    has_moved = any(
        isinstance(record.key, ConsumerGroupCurrentMemberAssignmentKey)
        for record in outcome.records
    )
    return replace(
        outcome,
        response=compute_join_answer(metadata, response),
        effects=(*outcome.effects, *_compute_deadlines(group_id, metadata, response, has_moved)),
    )


def _compute_deadlines(
    group_id: GroupId,
    metadata: ConsumerGroupMemberMetadataValue,
    response: ConsumerGroupHeartbeatResponse,
    has_moved: bool,
) -> tuple[Effect, ...]:
    """Renew the session, and arm the deadlines of the next JoinGroup and SyncGroup (row T11).

    A member that must revoke partitions has one rebalance timeout to rejoin, from its first request
    on; a rejoin without the revocation does not extend it. The SyncGroup deadline is armed only if
    the join has moved the member: otherwise it may be a late JoinGroup of a client that has its
    assignment already and will not send SyncGroup.
    """
    classic, member_id = metadata.classic_member_metadata, response.member_id
    assert classic is not None, "it joined by JoinGroup"
    timeout_ms, join = metadata.rebalance_timeout_ms, ClassicDeadline.JOIN
    must_give_up = not response.parkable
    sync = ArmClassicDeadline(group_id, ClassicDeadline.SYNC, member_id, timeout_ms)
    return (
        ArmClassicDeadline(group_id, join, member_id, timeout_ms, stays=True)
        if must_give_up
        else CancelClassicDeadline(group_id, join, member_id),
        ArmClassicDeadline(
            group_id, ClassicDeadline.SESSION, member_id, classic.session_timeout_ms
        ),
        *((sync,) if has_moved else ()),
    )


def handle_reconcile_by_join_group(shard: Shard, command: ReconcileMember, now: Now) -> Outcome:
    """The continuation of a JoinGroup; the group may have been downgraded in the meantime."""
    classic = shard.classic_group(command.group_id)
    joined = None if classic is None else classic.members.get(command.member_id)
    if classic is not None and joined is not None:
        is_new = command.epoch_known == JOIN_EPOCH
        return handle_join_of_downgraded_member(shard, classic, joined, now, is_new=is_new)
    try:
        outcome = handle_reconcile_member(shard, command, now)
    except FencedMemberEpoch as error:
        # Classic clients do not know FENCED_MEMBER_EPOCH; UNKNOWN_MEMBER_ID makes them start over.
        raise UnknownMemberId(error.message) from None
    member = shard.consumer_groups[command.group_id].entries[command.member_id]
    if member.metadata is None or member.classic is None:
        raise UnknownMemberId(f"Member {command.member_id} does not use the classic protocol.")
    return _translate(command.group_id, outcome, member.metadata)
