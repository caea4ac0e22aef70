"""Who a member of a classic group is: the checks that its requests share."""

from __future__ import annotations

from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.state.classic_group import ClassicGroup, ClassicGroupState, ClassicMember
from coordinator.core.state.outcome import ArmClassicDeadline
from coordinator.core.state.shard import Shard
from model.commands import ClassicDeadline
from model.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import GroupId, InstanceId, MemberId


def check_no_other_group(shard: Shard, group_id: GroupId) -> None:
    """Row J6: a member cannot join a group of another type as a classic group.

    A consumer group without members is replaced by a classic group.
    """
    group = shard.consumer_groups.get(group_id)
    if (group is not None and group.member_count) or group_id in shard.foreign_groups:
        raise InconsistentGroupProtocol(f"Group {group_id} is not a classic group.")


def check_group(shard: Shard, group_id: GroupId) -> ClassicGroup:
    """The classic group. Where there is none, nobody is a member of it."""
    group = shard.classic_group(group_id)
    if group is None or group_id in shard.consumer_groups or group_id in shard.foreign_groups:
        raise UnknownMemberId(f"There is no classic group {group_id}.")
    return group


def check_member(
    group: ClassicGroup | ClassicDraft, member_id: MemberId, instance_id: InstanceId | None
) -> ClassicMember:
    """The member of that id, which has to be the instance where one is named. Rows J3, J4."""
    if instance_id is not None:
        holder = group.instances.get(instance_id)
        if holder is None:
            raise UnknownMemberId(f"Nobody is instance {instance_id} in group {group.group_id}.")
        if holder != member_id:
            raise FencedInstanceId(
                f"Instance {instance_id} is member {holder} now, and not {member_id}."
            )
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def check_generation(group: ClassicGroup, generation: int) -> None:
    """Rows S2, H1, O3."""
    if generation != group.generation:
        raise IllegalGeneration(
            f"The generation is {group.generation}, the request is of {generation}."
        )


def compute_session(group: ClassicGroup, member: ClassicMember) -> ArmClassicDeadline:
    """The session of a member that was heard from now."""
    return ArmClassicDeadline(
        group.group_id, ClassicDeadline.SESSION, member.member_id, member.session_timeout_ms
    )


def check_classic_commit(
    group: ClassicGroup,
    member_id: MemberId,
    instance_id: InstanceId | None,
    generation: int,
    *,
    in_transaction: bool,
    nobody_may: bool = False,
) -> None:
    """Whether a caller may commit in the group. Rows O3 and O4.

    While the group prepares a rebalance its members commit as of the generation that ends. A
    transaction is held to the generation, and not to the state; where ``nobody_may``, one that
    says nothing of a member is not held to anything (KIP-447: older producers do not).
    """
    is_empty = group.state is ClassicGroupState.EMPTY
    if generation < 0 and is_empty:
        return
    if generation >= 0 or member_id or instance_id is not None:
        check_member(group, member_id, instance_id)
        check_generation(group, generation)
    elif not nobody_may:
        raise UnknownMemberId(f"Group {group.group_id} has members, and only they may commit.")
    if not in_transaction and group.state is ClassicGroupState.COMPLETING_REBALANCE:
        raise RebalanceInProgress("The group is rebalancing: commit after the next assignment.")
