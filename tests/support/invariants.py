"""Invariants of group state, named as in the specification.

Each raises ``AssertionError`` with what is wrong. The simulator, the property tests and the
scenarios check them; the server does not.
"""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup, ConsumerGroupState
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH
from model.log.records import MemberState


def check_group(group: ConsumerGroup) -> None:
    """Check all of the invariants below."""
    no_double_client_assignment(group)
    valid_partition_epoch(group)
    legal_target_assignment(group)
    valid_member_epoch(group)
    valid_stable_group_state(group)
    one_member_per_instance(group)


def no_double_client_assignment(group: ConsumerGroup) -> None:
    """No partition is assigned to, or pending revocation at, two members (S1)."""
    holders: dict[int, str] = {}
    for member in group.members():
        for number in (*member.assigned, *member.pending_revocation):
            other = holders.setdefault(number, member.member_id)
            assert other == member.member_id, (
                f"{group.group_id}: partition {number} has two owners, {other} and "
                f"{member.member_id}"
            )


def valid_partition_epoch(group: ConsumerGroup) -> None:
    """A partition's current owner is exactly the member that has it (S3)."""
    held: dict[int, int] = {}
    for member in group.members():
        for number in (*member.assigned, *member.pending_revocation):
            held[number] = member.slot
    for number, slot in enumerate(group.owner):
        assert held.get(number, NOBODY) == slot, (
            f"{group.group_id}: partition {number} is marked as held by slot {slot}, but "
            f"{held.get(number, NOBODY)} holds it"
        )
        if slot != NOBODY:
            holder = group.slots[slot]
            assert holder is not None
            epoch = group.assignment_epoch_of[number]
            # A static member that left temporarily is at epoch -2 and keeps its partitions.
            assert holder.member_epoch < 0 or epoch <= holder.member_epoch, (
                f"{group.group_id}: partition {number} has epoch {epoch}, newer than its "
                f"holder's {holder.member_epoch}"
            )


def legal_target_assignment(group: ConsumerGroup) -> None:
    """The target gives each partition to at most one member, which exists (S4)."""
    given: dict[int, str] = {}
    for member in group.entries.values():
        for number in member.target or ():
            assert number not in given, f"{group.group_id}: the target gives {number} twice"
            given[number] = member.member_id
            assert group.target[number] == member.slot
    for number, slot in enumerate(group.target):
        assert (slot == NOBODY) == (number not in given)


def valid_member_epoch(group: ConsumerGroup) -> None:
    """member epoch <= assignment epoch <= group epoch (S6)."""
    assert group.target_epoch <= group.group_epoch, (
        f"{group.group_id}: assignment epoch {group.target_epoch} is above group epoch "
        f"{group.group_epoch}"
    )
    for member in group.members():
        assert member.member_epoch <= group.target_epoch, (
            f"{group.group_id}: {member.member_id} is at {member.member_epoch}, above the "
            f"assignment epoch {group.target_epoch}"
        )


def valid_stable_group_state(group: ConsumerGroup) -> None:
    """STABLE: all members at the group epoch, nothing pending, assigned equals target (S8).

    A member whose new regular expression is not resolved yet may have less than the target, which
    matches the old one: it has revoked the rest, and the epoch is bumped only when the new one is
    resolved.
    """
    if group.state() is not ConsumerGroupState.STABLE:
        return
    for member in group.members():
        assert member.state is MemberState.STABLE
        assert member.member_epoch == group.group_epoch
        assert not member.pending_revocation
        if group.waits_for_regex(member):
            assert set(member.assigned) <= set(member.target or ())
            continue
        assert set(member.assigned) == set(member.target or ()), (
            f"{group.group_id}: Stable, but {member.member_id} does not hold its target"
        )


def one_member_per_instance(group: ConsumerGroup) -> None:
    """An instance id belongs to at most one member, and the group knows which (S24)."""
    found: dict[str, str] = {}
    for member in group.members():
        instance_id = member.metadata.instance_id if member.metadata is not None else None
        if instance_id is None:
            assert member.member_epoch != STATIC_LEAVE_EPOCH, (
                f"{group.group_id}: {member.member_id} is to come back, and is no instance"
            )
            continue
        other = found.setdefault(instance_id, member.member_id)
        assert other == member.member_id, (
            f"{group.group_id}: {other} and {member.member_id} are both instance {instance_id}"
        )
    assert found == group.static_members
