"""Targets that a move budget cuts into steps: when the next one begins, and with what."""

from __future__ import annotations

from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import InstallTarget, TargetProblem
from model.ids import GroupId
from model.responses import Done
from model.value import value
from muster.assignors.legality import find_legal


@value
class ContinueMoves:
    """A move budget held partitions up: let more of them go, once all members have followed."""

    group_id: GroupId


def handle_continue_moves(shard: Shard, command: ContinueMoves) -> Outcome:
    """A new group epoch, for the next step; nothing while members still follow the last one."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not has_followed(group):
        return Outcome(response=Done())
    records = compute_epoch_bump(shard, group, command.group_id, group.subscribed_topic_names())
    effects = (compute_target_effect(shard, group, command.group_id),)
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def has_followed(group: ConsumerGroup) -> bool:
    """Whether the target is that of the group's epoch, and all members are at it."""
    return (
        group.member_count > 0
        and group.target_epoch == group.group_epoch
        and all(member.is_reconciled_to(group.target_epoch) for member in group.members())
    )


def is_target_reached(group: ConsumerGroup) -> bool:
    """Whether all whom the target in force names are at it, be it that of an earlier epoch."""
    return all(
        member.target is None or member.is_reconciled_to(group.target_epoch)
        for member in group.members()
    )


def is_another_step(problem: TargetProblem, answer: InstallTarget) -> bool:
    """Whether the answer takes anything from a live member."""
    owner = problem.problem.owner
    return bool((find_legal(problem.problem, owner) & (answer.target != owner)).any())
