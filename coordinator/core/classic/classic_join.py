"""JoinGroup of classic groups. Rows J1 to J11 are those of tests/scenarios/README.md.

It follows Kafka's ``classicGroupJoinToClassicGroup`` and the methods that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from coordinator.core.classic.classic_causes import (
    compute_classic_cause,
    compute_join_cause,
    compute_rejoin_cause,
)
from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.classic.classic_members import check_member, check_no_other_group
from coordinator.core.classic.classic_rebalance import (
    compute_event_of_rejoin,
    compute_join_answer,
    compute_joined_members,
    compute_protocol,
    rebalance,
)
from coordinator.core.groups.group_tombstones import compute_group_tombstones
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicMember,
    Phase,
    compute_new_group,
    compute_size,
)
from coordinator.core.state.classic.classic_states import ClassicEvent, ClassicGroupState, Reaction
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE, decode_subscribed_topics
from coordinator.core.state.outcome import Outcome, Release, Wait
from coordinator.core.state.shard import Shard
from model.commands.classic import PROTOCOLS_MAX, ClassicDeadline, JoinGroup
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidRequest,
    InvalidSessionTimeout,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import InstanceId, MemberId
from model.now import Now
from model.past.causes import Cause, CauseKind
from model.responses.classic import JoinGroupResponse

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""The session timeout of a new member during its first join phase (Kafka's constant): a client
that does not know its member id yet cannot send heartbeats or rejoin."""


def handle_join_group(shard: Shard, command: JoinGroup, now: Now) -> Outcome:
    """Add or update the member; its response is parked if the group has to rebalance."""
    settings = shard.settings_of(command.group_id)
    check_session_timeout(settings, command)
    check_no_other_group(shard, command.group_id)
    draft = _begin(shard, command, now)
    if not _has_room(draft, settings, command.member_id):
        return _refuse_for_room(draft, settings, command)
    _check_protocols(draft, command)
    _check_metadata(draft, settings, command)
    if command.member_id is None:
        return _join_new(draft, settings, command)
    return _join_known(draft, settings, command, command.member_id)


def check_session_timeout(settings: CoordinatorSettings, command: JoinGroup) -> None:
    """Raise ``InvalidSessionTimeout`` for a session timeout out of bounds (row J2)."""
    least_ms = settings.group_min_session_timeout_ms
    most_ms = settings.group_max_session_timeout_ms
    if not least_ms <= command.session_timeout_ms <= most_ms:
        raise InvalidSessionTimeout(
            f"The session timeout of {command.session_timeout_ms} ms is not within the range "
            f"allowed by the broker ({least_ms} ms to {most_ms} ms)."
        )


def _begin(shard: Shard, command: JoinGroup, now: Now) -> ClassicDraft:
    """A draft of the group. A new member creates the group, with its first record (row J3)."""
    group_id = command.group_id
    known = shard.classic_group(group_id)
    if known is not None:
        return ClassicDraft(known, now)
    draft = ClassicDraft(compute_new_group(group_id, now.wall_ms), now)
    empty = shard.consumer_groups.get(group_id)
    if empty is not None or not shard.has_simple_group(group_id):
        if command.member_id is not None:
            raise UnknownMemberId(f"Group {group_id} not found.")
        if empty is not None:
            draft.records += compute_group_tombstones(shard, group_id)
        draft.write()
    return draft


def _has_room(
    draft: ClassicDraft, settings: CoordinatorSettings, member_id: MemberId | None
) -> bool:
    """Whether the group has capacity for the member (row J7).

    During a join phase only members that have joined count: the last to join are refused.
    """
    member = None if member_id is None else draft.members.get(member_id)
    match draft.state:
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            return True
        case ClassicGroupState.PREPARING_REBALANCE:
            is_waiting = member is not None and member.awaits is Phase.JOIN
            return is_waiting or draft.awaiting_joins < settings.group_max_size
        case _:
            return member is not None or len(draft.members) < settings.group_max_size


def _refuse_for_room(
    draft: ClassicDraft, settings: CoordinatorSettings, command: JoinGroup
) -> Outcome:
    """Refuse a member because the group is full; one that rejoins is removed from the group."""
    error = GroupMaxSizeReached(
        f"The group has reached its maximum capacity of {settings.group_max_size} members."
    )
    member_id = command.member_id
    if member_id is None or not (member_id in draft.members or member_id in draft.pending_members):
        raise error
    known = draft.members.get(member_id)
    draft.remove(member_id)
    if draft.state is ClassicGroupState.PREPARING_REBALANCE:
        reason = f"the group has no capacity for member {member_id}"
        cause = compute_classic_cause(CauseKind.MEMBER_LEFT, member_id, known, "the group is full")
        rebalance(draft, settings, ClassicEvent.GONE, (reason, cause))
    return draft.finish(error)


def _check_protocols(draft: ClassicDraft, command: JoinGroup) -> None:
    """Raise ``InconsistentGroupProtocol`` unless all members support a common protocol (row J6)."""
    names = [protocol.name for protocol in command.protocols]
    if not command.protocol_type or not names:
        raise InconsistentGroupProtocol(
            "The member tried to join with an empty protocol type or an empty protocol list."
        )
    if draft.state is ClassicGroupState.EMPTY:
        return
    if command.protocol_type != draft.protocol_type:
        raise InconsistentGroupProtocol(
            f"The protocol type {command.protocol_type} does not match the protocol type "
            f"{draft.protocol_type} of the group."
        )
    if not any(map(draft.supports, names)):
        raise InconsistentGroupProtocol(
            f"The protocols of the member ({', '.join(names)}) are incompatible with those of "
            "existing members."
        )


def check_member_metadata(settings: CoordinatorSettings, command: JoinGroup) -> None:
    """Raise ``InvalidRequest`` for too many or too large protocols, in a group of either type."""
    count = len(command.protocols)
    if count > PROTOCOLS_MAX:
        raise InvalidRequest(
            f"The member has {count} protocols; at most {PROTOCOLS_MAX} are allowed."
        )
    size, most = compute_size(command.protocols), settings.group_member_metadata_max_bytes
    if size > most:
        raise InvalidRequest(
            f"The protocols of the member take {size} bytes, which exceeds "
            f"group.member.metadata.max.bytes ({most})."
        )


def _check_metadata(draft: ClassicDraft, settings: CoordinatorSettings, command: JoinGroup) -> None:
    """Raise ``GroupMaxSizeReached`` if the protocols of all members exceed their limit.

    A member may always rejoin if its protocols have not grown.
    """
    member_id = command.member_id
    if command.instance_id is not None:
        member_id = draft.instances.get(command.instance_id, member_id)
    known = None if member_id is None else draft.members.get(member_id)
    before = 0 if known is None else compute_size(known.protocols)
    more = compute_size(command.protocols) - before
    most = settings.group_metadata_max_bytes
    if more > 0 and draft.metadata_bytes + more > most:
        raise GroupMaxSizeReached(
            f"The protocols of all members would take {draft.metadata_bytes + more} bytes, which "
            f"exceeds group.metadata.max.bytes ({most})."
        )


# --------------------------------------------------------------------------------- new members


def _join_new(draft: ClassicDraft, settings: CoordinatorSettings, command: JoinGroup) -> Outcome:
    """Join without a member id: a static member, possibly returning, or a dynamic one."""
    member_id = command.new_member_id
    if command.instance_id is not None:
        if command.instance_id in draft.instances:
            return _replace(draft, settings, command, command.instance_id)
        return _add(draft, settings, command, member_id)
    if not command.requires_member_id:
        return _add(draft, settings, command, member_id)
    draft.pending_members.add(member_id)
    draft.arm(ClassicDeadline.SESSION, command.session_timeout_ms, member_id)
    message = f"The member must rejoin with member id {member_id}."
    return draft.finish(MemberIdRequired(message, member_id))


def _add(
    draft: ClassicDraft, settings: CoordinatorSettings, command: JoinGroup, member_id: MemberId
) -> Outcome:
    member = ClassicMember(
        member_id,
        command.instance_id,
        command.caller.client_id,
        command.caller.client_host,
        command.rebalance_timeout_ms,
        command.session_timeout_ms,
        metadata=b"",
        assignment=b"",
        protocols=command.protocols,
        awaits=Phase.JOIN,
        is_new=True,
        awaits_id=command.member_id is None and command.instance_id is None,
    )
    if draft.initial_delay is not None:
        draft.initial_delay = replace(draft.initial_delay, has_new_member=True)

    def add() -> None:
        draft.add(member, command.protocol_type)
        draft.arm(ClassicDeadline.SESSION, NEW_MEMBER_JOIN_TIMEOUT_MS, member_id)

    reason = _compute_reason(f"member {member_id} joins", command)
    cause = compute_join_cause(command, member_id)
    rebalance(draft, settings, ClassicEvent.JOIN, (reason, cause), change=add)
    return draft.finish(wait=Wait(member_id, Phase.JOIN))


def _compute_reason(event: str, command: JoinGroup) -> str:
    return f"{event}: {command.reason or 'not provided'}"


# ------------------------------------------------------------------------------- known members


def _join_known(
    draft: ClassicDraft, settings: CoordinatorSettings, command: JoinGroup, member_id: MemberId
) -> Outcome:
    """Join with a member id: one that was handed out, or a member's (rows J3, J4, J11)."""
    if member_id in draft.pending_members:
        if command.instance_id is not None:
            raise UnknownMemberId(
                f"Member id {member_id} was not assigned to instance id {command.instance_id}."
            )
        return _add(draft, settings, command, member_id)
    member = check_member(draft, member_id, command.instance_id)
    event = compute_event_of_rejoin(draft, member, member.protocols == command.protocols)
    reason = _compute_reason(f"member {member_id} joins again", command)
    cause = compute_rejoin_cause(event, member, command.reason)
    change = partial(_update, draft, command, member_id)
    return _join_again(draft, settings, member, event, (reason, cause), change)


def _join_again(
    draft: ClassicDraft,
    settings: CoordinatorSettings,
    member: ClassicMember,
    event: ClassicEvent,
    why: tuple[str, Cause],
    change: Callable[[], None],
) -> Outcome:
    """Answer from the current generation, or rebalance and park the response."""
    member_id = member.member_id
    if draft.reaction(event) is Reaction.ANSWER:
        draft.begin_session(member)
        return draft.finish(compute_join_answer(draft, member_id, compute_joined_members(draft)))
    rebalance(draft, settings, event, why, change=change)
    return draft.finish(wait=Wait(member_id, Phase.JOIN))


def handle_join_of_downgraded_member(
    shard: Shard, group: ClassicGroup, member: ClassicMember, now: Now, *, is_new: bool
) -> Outcome:
    """The continuation of a JoinGroup whose group was downgraded after the first step.

    The member's metadata is in the group already. It waits for the others like any rejoining
    member; if it were refused, the others would wait for it. A member that the first step created
    (``is_new``) may not know its member id.
    """
    if member.awaits is Phase.JOIN:
        raise RebalanceInProgress("A newer request of the member replaced this one.")
    draft = ClassicDraft(group, now)
    event = compute_event_of_rejoin(draft, member, same=True)

    def wait() -> None:
        awaits_id = is_new and member.instance_id is None
        joined = draft.members[member.member_id]
        draft.put(replace(joined, awaits=Phase.JOIN, awaits_id=awaits_id))

    settings = shard.settings_of(group.group_id)
    reason = f"member {member.member_id} joins again: the group was downgraded meanwhile"
    cause = compute_rejoin_cause(event, member, "the group was downgraded meanwhile")
    return _join_again(draft, settings, member, event, (reason, cause), wait)


def _update(draft: ClassicDraft, command: JoinGroup, member_id: MemberId) -> None:
    """Update the member from its JoinGroup, and mark it as joined."""
    draft.put(
        replace(
            draft.members[member_id],
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            session_timeout_ms=command.session_timeout_ms,
            protocols=command.protocols,
            awaits=Phase.JOIN,
        )
    )


# ------------------------------------------------------------------------------ static members


def _replace(
    draft: ClassicDraft,
    settings: CoordinatorSettings,
    command: JoinGroup,
    instance_id: InstanceId,
) -> Outcome:
    """Replace a static member that returns with a new member id (KIP-345); fence the old one."""
    old_leader, new_id = draft.leader, command.new_member_id
    old = _fence(draft, instance_id)
    member = draft.rename(instance_id, new_id)
    draft.begin_session(replace(member, session_timeout_ms=command.session_timeout_ms))
    is_stable = draft.state is ClassicGroupState.STABLE
    _update(draft, command, new_id)
    stays = (
        is_stable
        and compute_protocol(draft) == draft.protocol_name
        and _subscribes_alike(draft, old, draft.members[new_id])
    )
    event = ClassicEvent.REPLACE if stays else ClassicEvent.REPLACE_OTHERWISE
    if draft.reaction(event) is not Reaction.STORE:
        reason = _compute_reason(f"instance {instance_id} is back as member {new_id}", command)
        cause = compute_rejoin_cause(event, draft.members[new_id], command.reason)
        rebalance(draft, settings, event, (reason, cause))
        return draft.finish(wait=Wait(new_id, Phase.JOIN))
    member = draft.members[new_id]
    draft.put(replace(member, metadata=member.metadata_for(draft.protocol_name), awaits=None))
    draft.write()
    return draft.finish(_compute_return_answer(draft, command, old_leader))


def _fence(draft: ClassicDraft, instance_id: InstanceId) -> ClassicMember:
    """Return the instance's current member, and refuse its parked request (row J4)."""
    old = draft.members[draft.instances[instance_id]]
    if old.awaits is not None:
        error = FencedInstanceId(
            f"Static member {old.member_id} with instance id {instance_id} was fenced by another "
            "member."
        )
        draft.releases.append(Release(old.member_id, old.awaits, error))
    return old


def _subscribes_alike(draft: ClassicDraft, old: ClassicMember, new: ClassicMember) -> bool:
    """Whether the static member subscribes to the same topics as before.

    Topics that the leader does not know would stay unassigned in the current generation.
    Subscriptions that cannot be decoded count as equal.
    """
    if draft.protocol_type != PROTOCOL_TYPE:
        return True
    before = decode_subscribed_topics(old.metadata)
    now = decode_subscribed_topics(new.metadata_for(draft.protocol_name))
    return before is None or now is None or set(before) == set(now)


def _compute_return_answer(
    draft: ClassicDraft, command: JoinGroup, old_leader: MemberId | None
) -> JoinGroupResponse:
    """The response to a static member that returns while the generation continues (KIP-814).

    A returning leader must not assign. From version 9 on ``skip_assignment`` says so; before, the
    response names the previous leader id, so that the member takes itself for a follower.
    """
    answer = compute_join_answer(draft, command.new_member_id, compute_joined_members(draft))
    if command.may_skip_assignment:
        return replace(answer, skip_assignment=answer.leader == command.new_member_id)
    return replace(answer, leader=old_leader, members=())
