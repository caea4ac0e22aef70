"""The rebalance of a classic group: the join phase, and the generation that it ends with.

It follows Kafka's ``prepareRebalance``, ``maybeCompleteJoinPhase``, ``completeClassicGroupJoin``
and ``tryCompleteInitialRebalanceElseSchedule``. The record of a generation is written when the
leader sends the assignments, or at once if the group is empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from coordinator.core.classic.classic_draft import GROUP, ClassicDraft
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicMember,
    InitialDelay,
    Phase,
    compute_next_generation,
    compute_subscribed_topics,
)
from coordinator.core.state.classic.classic_states import ClassicEvent, ClassicGroupState, Reaction
from coordinator.core.state.outcome import ArmClassicDeadline
from model.commands.classic import ClassicDeadline
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError, RebalanceInProgress
from model.ids import MemberId, compute_java_hash
from model.past.causes import Cause
from model.responses.classic import JoinedMember, JoinGroupResponse

LEAST_WAIT_MS = 1_000
"""The least extension of a join phase: the rebalance timeout of the members may be 0."""

REBALANCING = "The group is rebalancing, so a rejoin is needed."


def rebalance(
    draft: ClassicDraft,
    settings: CoordinatorSettings,
    event: ClassicEvent,
    why: tuple[str, Cause],
    change: Callable[[], None] | None = None,
    error: GroupError | None = None,
) -> None:
    """Apply an event to the group: begin a rebalance, or complete the join phase if all joined.

    ``why`` is a reason for the log, and the cause. ``change`` applies the event to the members.
    Parked SyncGroups are answered before it, with ``error`` or else REBALANCE_IN_PROGRESS.
    """
    before = draft.state
    reaction = draft.move(event)
    begins = reaction in (Reaction.PREPARE, Reaction.FAIL)
    if begins:
        draft.note_rebalance(*why)
        if before is ClassicGroupState.COMPLETING_REBALANCE:
            _reset_assignments(draft, error or RebalanceInProgress(REBALANCING))
    if change is not None:
        change()
    if begins:
        _begin_join_phase(draft, settings, was_empty=before is ClassicGroupState.EMPTY)
    elif reaction is Reaction.WAIT and draft.has_all_joined and draft.initial_delay is None:
        complete_join(draft)


def _reset_assignments(draft: ClassicDraft, error: GroupError) -> None:
    """Clear all assignments, and answer the parked SyncGroups with the error."""
    waiting = [member for member in draft.members.values() if member.awaits is Phase.SYNC]
    draft.release_all(waiting, Phase.SYNC, [error] * len(waiting))
    draft.put_all(member.assigned(b"") for member in draft.members.values())


def _begin_join_phase(
    draft: ClassicDraft, settings: CoordinatorSettings, *, was_empty: bool
) -> None:
    draft.cancel(ClassicDeadline.SYNC)
    draft.pending_syncs.clear()
    if was_empty:
        delay_ms = settings.group_initial_rebalance_delay_ms
        left_ms = max(draft.rebalance_timeout_ms - delay_ms, 0)
        draft.initial_delay = InitialDelay(delay_ms, left_ms)
        draft.arm(ClassicDeadline.JOIN, delay_ms)
    elif draft.has_all_joined:
        complete_join(draft)
    else:
        draft.arm(ClassicDeadline.JOIN, draft.rebalance_timeout_ms)


def compute_group_deadlines_at_load(group: ClassicGroup) -> tuple[ArmClassicDeadline, ...]:
    """The deadlines of the group itself on load: the join phase of a downgraded group."""
    if group.state is not ClassicGroupState.PREPARING_REBALANCE:
        return ()
    timeout_ms = max((member.rebalance_timeout_ms for member in group.members.values()), default=0)
    return (ArmClassicDeadline(group.group_id, ClassicDeadline.JOIN, GROUP, timeout_ms),)


def end_join_phase(draft: ClassicDraft, settings: CoordinatorSettings) -> None:
    """Complete the join phase; extend it if it is a delayed first rebalance with new members."""
    delay = draft.initial_delay
    if delay is None or not delay.has_new_member or not delay.left_ms:
        complete_join(draft)
        return
    next_ms = min(settings.group_initial_rebalance_delay_ms, delay.left_ms)
    draft.initial_delay = InitialDelay(next_ms, max(delay.left_ms - delay.delay_ms, 0))
    draft.arm(ClassicDeadline.JOIN, next_ms)


def complete_join(draft: ClassicDraft) -> None:
    """Begin the generation with the members that have joined and with all static members.

    If only static members are left and none of them has joined, the join phase is extended until
    their sessions expire.
    """
    draft.cancel(ClassicDeadline.JOIN)
    for member_id in compute_late_members(draft):
        draft.remove(member_id)
    if draft.members and not _elect_leader(draft):
        draft.arm(ClassicDeadline.JOIN, max(draft.rebalance_timeout_ms, LEAST_WAIT_MS))
        return
    draft.move(ClassicEvent.JOINED if draft.members else ClassicEvent.DESERTED)
    draft.generation = compute_next_generation(draft.generation)
    draft.initial_delay = None
    draft.pending_syncs.clear()
    if draft.members:
        _begin_generation(draft)
    else:
        draft.protocol_name = draft.leader = None
        draft.subscribed_topics = compute_subscribed_topics(draft.protocol_type, None, {})
        draft.write()


def compute_late_members(draft: ClassicDraft) -> list[MemberId]:
    """The dynamic members that have not joined: they are removed when the join phase ends."""
    return [
        member.member_id
        for member in draft.members.values()
        if member.awaits is not Phase.JOIN and member.instance_id is None
    ]


def _elect_leader(draft: ClassicDraft) -> bool:
    """Keep the leader if it has joined, else elect the first member that has.

    Returns ``False`` if no member has joined.
    """
    leader = None if draft.leader is None else draft.members.get(draft.leader)
    if leader is not None and leader.awaits is Phase.JOIN:
        return True
    for member in draft.members.values():
        if member.awaits is Phase.JOIN:
            draft.leader = member.member_id
            return True
    return False


def _begin_generation(draft: ClassicDraft) -> None:
    """Choose the protocol, answer all members that have joined, and wait for their SyncGroups."""
    name = draft.protocol_name = compute_protocol(draft)
    waiting = [member for member in draft.members.values() if member.awaits is Phase.JOIN]
    draft.put_all(member.in_generation(name) for member in draft.members.values())
    draft.subscribed_topics = compute_subscribed_topics(draft.protocol_type, name, draft.members)
    joined = compute_joined_members(draft)
    answers = [compute_join_answer(draft, member.member_id, joined) for member in waiting]
    # A static member that has not joined was not heard from: its session is not renewed.
    draft.release_all(waiting, Phase.JOIN, answers)
    draft.pending_syncs.update(draft.members)
    draft.arm(ClassicDeadline.SYNC, draft.rebalance_timeout_ms)


def compute_protocol(draft: ClassicDraft) -> str:
    """The protocol with the most votes; each member votes for its first one that all support.

    A tie is resolved by the order of Java's ``HashMap``, in which Kafka counts the votes: the
    group gets the same protocol from either coordinator, in whatever order the members joined.
    """
    votes: Counter[str] = Counter()
    for member in draft.members.values():
        if member.protocols:
            common = (p.name for p in member.protocols if draft.supports(p.name))
            votes[next(common)] += 1
    return min(votes, key=lambda name: (-votes[name], compute_slot(name, len(votes))))


def compute_slot(name: str, names: int) -> int:
    """The bucket of ``name`` in a Java ``HashMap`` of ``names`` entries; iteration follows it."""
    slots = 16
    while names > slots * 3 // 4:
        slots *= 2
    code = compute_java_hash(name) & 0xFFFFFFFF
    return (code ^ code >> 16) & (slots - 1)


def compute_joined_members(draft: ClassicDraft) -> tuple[JoinedMember, ...]:
    """All members, as the JoinGroup response to the leader lists them."""
    return tuple(
        JoinedMember(member.member_id, member.instance_id, member.metadata)
        for member in draft.members.values()
    )


def compute_join_answer(
    draft: ClassicDraft, member_id: MemberId, joined: tuple[JoinedMember, ...]
) -> JoinGroupResponse:
    """The JoinGroup response to a member of the generation; only the leader's lists members."""
    leader = draft.leader
    generation = draft.generation, draft.protocol_type, draft.protocol_name, leader
    return JoinGroupResponse(member_id, *generation, joined if member_id == leader else ())


def compute_event_of_rejoin(draft: ClassicDraft, member: ClassicMember, same: bool) -> ClassicEvent:
    """The event of a rejoin; ``same`` if the member's protocols are unchanged."""
    if not same:
        return ClassicEvent.JOIN
    is_leader = member.member_id == draft.leader
    return ClassicEvent.LEADER_REJOIN if is_leader else ClassicEvent.FOLLOWER_REJOIN
