"""Checks that the requests of classic members share.

The rows are those of tests/scenarios/README.md.
"""

from __future__ import annotations

from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
)
from coordinator.core.state.outcome import ArmClassicDeadline
from coordinator.core.state.shard import Shard
from model.commands.classic import ClassicDeadline
from model.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import GroupId, InstanceId, MemberId


def check_no_other_group(shard: Shard, group_id: GroupId) -> None:
    """Raise ``InconsistentGroupProtocol`` if the id belongs to a group of another type (row J6).

    An empty consumer group is no obstacle: a classic group replaces it.
    """
    group = shard.consumer_groups.get(group_id)
    if (group is not None and group.member_count) or group_id in shard.foreign_groups:
        raise InconsistentGroupProtocol(f"Group {group_id} is not a classic group.")


def check_group(shard: Shard, group_id: GroupId) -> ClassicGroup:
    """The classic group; raises ``UnknownMemberId`` if there is none."""
    group = shard.classic_group(group_id)
    if group is None or group_id in shard.consumer_groups or group_id in shard.foreign_groups:
        raise UnknownMemberId(f"Classic group {group_id} not found.")
    return group


def check_member(
    group: ClassicGroup | ClassicDraft, member_id: MemberId, instance_id: InstanceId | None
) -> ClassicMember:
    """The member with this id, which must own the instance id if there is one.

    Raises ``UnknownMemberId`` (row J3) and ``FencedInstanceId`` (row J4).
    """
    if instance_id is not None:
        holder = group.instances.get(instance_id)
        if holder is None:
            raise UnknownMemberId(
                f"Instance id {instance_id} is unknown in group {group.group_id}."
            )
        if holder != member_id:
            raise FencedInstanceId(
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{holder}."
            )
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def check_generation(group: ClassicGroup, generation: int) -> None:
    """Raise ``IllegalGeneration`` for another generation than the group's (rows S2, H1, O3)."""
    if generation != group.generation:
        raise IllegalGeneration(
            f"The generation {generation} of the request does not match the generation "
            f"{group.generation} of the group."
        )


def compute_session(group: ClassicGroup, member: ClassicMember) -> ArmClassicDeadline:
    """The effect that renews the session of a member."""
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
    """Raise an error unless the caller may commit in the group (rows O3 and O4).

    During PreparingRebalance members still commit with the generation that ends. Transactions are
    checked against the generation, not against the state. With ``nobody_may``, a commit that names
    no member is accepted: producers from before KIP-447 name none.
    """
    is_empty = group.state is ClassicGroupState.EMPTY
    if generation < 0 and is_empty:
        return
    if generation >= 0 or member_id or instance_id is not None:
        check_member(group, member_id, instance_id)
        check_generation(group, generation)
    elif not nobody_may:
        raise UnknownMemberId(
            f"Group {group.group_id} is not empty: only its members may commit offsets."
        )
    if not in_transaction and group.state is ClassicGroupState.COMPLETING_REBALANCE:
        raise RebalanceInProgress("The group is rebalancing: commit after the next assignment.")
