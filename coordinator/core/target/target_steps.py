"""Targets that a move budget splits into steps: when the next step begins."""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.outcome import NoteEpochCauses, Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import InstallTarget, TargetProblem
from model.ids import GroupId
from model.past.causes import Cause, CauseKind
from model.responses.response import Done
from model.value import value
from muster.assignors.legality import find_legal


@value
class ContinueMoves:
    """Begin the next step of a move budget, once all members have reconciled to the last one."""

    group_id: GroupId


def handle_continue_moves(shard: Shard, command: ContinueMoves) -> Outcome:
    """Bump the group epoch for the next step, unless members still reconcile to the last one.

    A frozen group goes on with its steps once it is resumed.
    """
    group = shard.consumer_groups.get(command.group_id)
    if group is None or command.group_id in shard.freezes or not has_followed(group):
        return Outcome(response=Done())
    records = compute_epoch_bump(shard, group, command.group_id, group.subscribed_topic_names())
    effects = (
        compute_target_effect(shard, group, command.group_id),
        NoteEpochCauses(command.group_id, (Cause(CauseKind.NEXT_MOVES),)),
    )
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def has_followed(group: ConsumerGroup) -> bool:
    """Whether the target is that of the group epoch, and all members have reconciled to it."""
    return (
        group.member_count > 0
        and group.target_epoch == group.group_epoch
        and all(member.is_reconciled_to(group.target_epoch) for member in group.members())
    )


def is_target_reached(group: ConsumerGroup) -> bool:
    """Whether all members in the current target, of whatever epoch, have reconciled to it."""
    return all(
        member.target is None or member.is_reconciled_to(group.target_epoch)
        for member in group.members()
    )


def is_another_step(problem: TargetProblem, answer: InstallTarget) -> bool:
    """Whether the result moves a partition away from a member that may keep it."""
    owner = problem.problem.owner
    return bool((find_legal(problem.problem, owner) & (answer.target != owner)).any())
