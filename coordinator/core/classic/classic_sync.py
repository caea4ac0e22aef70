"""SyncGroup and Heartbeat of classic groups.

It follows Kafka's ``classicGroupSyncToClassicGroup`` and ``classicGroupHeartbeatToClassicGroup``.
Rows S1 to S5 and H1 to H4 are those of tests/scenarios/README.md.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.core.classic.classic_causes import compute_classic_cause
from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.classic.classic_members import (
    check_generation,
    check_group,
    check_member,
    compute_session,
)
from coordinator.core.classic.classic_rebalance import rebalance
from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicMember, Phase
from coordinator.core.state.classic.classic_states import STEPS, ClassicEvent, Reaction
from coordinator.core.state.outcome import Outcome, Wait
from coordinator.core.state.shard import Shard
from model.commands.classic import AssignmentFailure, ClassicDeadline, ClassicHeartbeat, SyncGroup
from model.errors import (
    AssignmentFailed,
    CoordinatorNotAvailable,
    GroupError,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import MemberId
from model.now import Now
from model.past.causes import CauseKind
from model.responses.classic import ClassicHeartbeatResponse, SyncGroupResponse


def handle_sync_group(shard: Shard, command: SyncGroup, now: Now) -> Outcome:
    """Answer with the member's assignment; parked until the leader sends the assignments."""
    group = check_group(shard, command.group_id)
    member = check_member(group, command.member_id, command.instance_id)
    check_generation(group, command.generation)
    _check_protocol(group, command)
    reaction = STEPS[group.state, _event(group, command)].reaction
    error = compute_refusal(reaction)
    if error is not None:
        raise error
    if reaction is Reaction.ANSWER and member.member_id not in group.pending_syncs:
        return Outcome(response=_answer(group, member), effects=(compute_session(group, member),))
    draft = ClassicDraft(group, now)
    _note_sync(draft, member)
    match reaction:
        case Reaction.ANSWER:
            draft.begin_session(member)
            return draft.finish(_answer(group, member))
        case Reaction.ASSIGN:
            _assign(draft, {given.member_id: given.assignment for given in command.assignments})
        case Reaction.FAIL:
            assert command.failure is not None, "FAILED_SYNC has a failure"
            return _fail(shard, draft, command.failure, command.member_id)
    return draft.finish(wait=Wait(member.member_id, Phase.SYNC))


def _event(group: ClassicGroup, command: SyncGroup) -> ClassicEvent:
    if command.member_id != group.leader:
        return ClassicEvent.SYNC
    return ClassicEvent.LEADER_SYNC if command.failure is None else ClassicEvent.FAILED_SYNC


def _check_protocol(group: ClassicGroup, command: SyncGroup) -> None:
    """Raise ``InconsistentGroupProtocol`` if the request names another protocol (row S3)."""
    if command.protocol_type not in (None, group.protocol_type):
        raise InconsistentGroupProtocol(
            f"The protocol type {command.protocol_type} does not match the protocol type "
            f"{group.protocol_type} of the group."
        )
    if command.protocol_name not in (None, group.protocol_name):
        raise InconsistentGroupProtocol(
            f"The protocol {command.protocol_name} does not match the protocol "
            f"{group.protocol_name} of the group."
        )


def compute_refusal(reaction: Reaction) -> GroupError | None:
    """The error of a reaction; ``None`` if the reaction is no refusal."""
    match reaction:
        case Reaction.REFUSE_UNKNOWN:
            return UnknownMemberId("The group has no members.")
        case Reaction.REFUSE_REBALANCE:
            return RebalanceInProgress("The group is rebalancing, so a rejoin is needed.")
        case Reaction.REFUSE_DEAD:
            return CoordinatorNotAvailable("The group has been deleted.")
        case _:
            return None


def _note_sync(draft: ClassicDraft, member: ClassicMember) -> None:
    """Note the SyncGroup; park it while the leader has not sent the assignments."""
    draft.pending_syncs.discard(member.member_id)
    if not draft.pending_syncs:
        draft.cancel(ClassicDeadline.SYNC)
    if draft.reaction(ClassicEvent.SYNC) is Reaction.PARK:
        draft.put(replace(member, awaits=Phase.SYNC))


def _assign(draft: ClassicDraft, assignments: dict[MemberId, bytes]) -> None:
    """Store the leader's assignments and answer all; members that it does not name get nothing."""
    waiting = [member for member in draft.members.values() if member.awaits is Phase.SYNC]
    given_of = assignments.get
    draft.put_all(
        member.assigned(given_of(member.member_id, b"")) for member in draft.members.values()
    )
    # Written before the state changes, as in Kafka: the timestamp in the record is that of
    # CompletingRebalance.
    draft.write()
    draft.move(ClassicEvent.LEADER_SYNC)
    kind, name = draft.protocol_type, draft.protocol_name
    given = (assignments.get(member.member_id, b"") for member in waiting)
    answers = [SyncGroupResponse(kind, name, assignment) for assignment in given]
    draft.release_all(waiting, Phase.SYNC, answers)


def _fail(
    shard: Shard, draft: ClassicDraft, failure: AssignmentFailure, member_id: MemberId
) -> Outcome:
    """Answer all parked SyncGroups with the leader's error, and rebalance."""
    settings = shard.settings_of(draft.group_id)
    error = AssignmentFailed(failure.message, failure.error)
    reason = f"the leader failed: {failure.message}"
    leader = draft.members.get(member_id)
    kind = CauseKind.ASSIGNMENT_FAILED
    cause = compute_classic_cause(kind, member_id, leader, failure.message)
    rebalance(draft, settings, ClassicEvent.FAILED_SYNC, (reason, cause), error=error)
    return draft.finish(wait=Wait(member_id, Phase.SYNC))


def _answer(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(group.protocol_type, group.protocol_name, member.assignment)


# ----------------------------------------------------------------------------------- heartbeat


def handle_classic_heartbeat(shard: Shard, command: ClassicHeartbeat) -> Outcome:
    """Renew the member's session; the response has an error if the member must rejoin."""
    group = check_group(shard, command.group_id)
    member = check_member(group, command.member_id, command.instance_id)
    check_generation(group, command.generation)
    error = compute_refusal(STEPS[group.state, ClassicEvent.HEARTBEAT].reaction)
    is_held = member.awaits is not None
    response: ClassicHeartbeatResponse | GroupError = ClassicHeartbeatResponse(is_held=is_held)
    if isinstance(error, RebalanceInProgress):
        response = RebalanceInProgress(str(error), is_held=is_held)
    elif error is not None:
        response = error
    effects = () if command.by_server else (compute_session(group, member),)
    return Outcome(response=response, effects=effects)
