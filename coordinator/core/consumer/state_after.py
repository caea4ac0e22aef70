"""The next assignment state of a member, by the arrays of its group."""

from __future__ import annotations

from coordinator.core.consumer.reconcile import (
    AssignmentState,
    compute_kept_state,
    compute_next_assignment_state,
)
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.reset_of_group import compute_withheld
from coordinator.core.state.shard import Shard
from model.commands.consumer import ReconcileMember
from model.log.records import MemberState


def compute_state_after(
    shard: Shard,
    group: ConsumerGroup,
    member: Member,
    current: AssignmentState,
    command: ReconcileMember,
) -> AssignmentState:
    """``compute_next_assignment_state`` with the group's arrays as input."""
    subscribed = group.subscribed_topic_indexes(member.metadata, shard.image)
    topic_index, owner = group.numbers.topic_index, group.owner
    withheld = compute_withheld(shard, group)
    subscribes_to_all = len(subscribed) == len(group.numbers.topics)
    if (
        member.state is MemberState.STABLE
        and member.assigned == member.target
        and subscribes_to_all
        and not command.has_subscription_changed
        and not withheld
    ):
        return compute_kept_state(current, group.target_epoch)
    owned = None
    is_as_known = current.member_epoch == command.epoch_known
    if command.owned is not None and is_as_known and tuple(member.assigned) == command.before:
        owned = group.numbers.known_numbers(command.owned)
    return compute_next_assignment_state(
        current,
        target=member.target or (),
        target_epoch=group.target_epoch,
        is_subscribed=(
            _subscribes if subscribes_to_all else lambda number: topic_index(number) in subscribed
        ),
        is_free=lambda number: owner[number] < 0,
        owned=owned,
        has_subscription_changed=command.has_subscription_changed,
        withheld=withheld,
    )


def _subscribes(number: int) -> bool:
    """Predicate for a member that subscribes to every topic of its group: always true."""
    return True
