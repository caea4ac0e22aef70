"""Reconciliation of a member with its target (Kafka's ``CurrentAssignmentBuilder``): pure.

A member revokes the partitions that are not in its target before it advances to a new epoch, and
is assigned only partitions that no other member owns. The partitions that the client reports as
owned (``owned``) acknowledge the revocation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from typing import assert_never

from model.errors import FencedMemberEpoch
from model.log.records import MemberState
from model.value import value


@value
class AssignmentState:
    """A member's assignment state. Maps have partition numbers to assignment epochs (KIP-1251)."""

    member_epoch: int
    previous_member_epoch: int
    state: MemberState
    assigned: Mapping[int, int]
    pending_revocation: Mapping[int, int]


def compute_next_assignment_state(
    current: AssignmentState,
    *,
    target: Collection[int],
    target_epoch: int,
    is_subscribed: Callable[[int], bool],
    is_free: Callable[[int], bool],
    owned: Collection[int] | None,
    has_subscription_changed: bool,
    withheld: Set[int] = frozenset(),
) -> AssignmentState:
    """The next assignment state of a member; the same object if nothing changes.

    ``target``: the member's target assignment. ``is_subscribed``: whether the member (still)
    subscribes to the topic of a partition. ``is_free``: whether the partition has no owner.
    ``owned``: the partitions that the client reports as owned, ``None`` if it does not report them.
    ``withheld``: partitions that nobody gets for now, whatever the target.
    Raises ``FencedMemberEpoch`` for a member in a state that this version does not know, unless
    it owns nothing.
    """
    match current.state:
        case MemberState.STABLE:
            if current.member_epoch != target_epoch:
                epoch = current.member_epoch
            elif has_subscription_changed:
                return _revoke_unsubscribed(current, is_subscribed, owned)
            else:
                return current
        case MemberState.UNREVOKED_PARTITIONS:
            if _owns_any(owned, current.pending_revocation):
                if has_subscription_changed:
                    return _revoke_unsubscribed(current, is_subscribed, owned)
                return current
            epoch = current.member_epoch
        case MemberState.UNRELEASED_PARTITIONS:
            epoch = current.member_epoch
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise FencedMemberEpoch(
                    "The member is in an unknown state. The member must abandon all its "
                    "partitions and rejoin."
                )
            epoch = target_epoch
        case _:
            assert_never(current.state)
    return _move_towards(
        current, epoch, target, target_epoch, is_subscribed, is_free, owned=owned, withheld=withheld
    )


def compute_kept_state(current: AssignmentState, target_epoch: int) -> AssignmentState:
    """``compute_next_assignment_state`` for a stable member whose assignment already is its target.

    Most members of a group take this path whenever another one joins or leaves.
    """
    return AssignmentState(
        target_epoch, current.member_epoch, MemberState.STABLE, current.assigned, {}
    )


def _owns_any(owned: Collection[int] | None, revoked: Collection[int]) -> bool:
    """Whether the client may still own a revoked partition; assumed if it reports nothing."""
    if owned is None:
        return True
    return any(number in revoked for number in owned)


def _revoke_unsubscribed(
    current: AssignmentState, is_subscribed: Callable[[int], bool], owned: Collection[int] | None
) -> AssignmentState:
    """Revoke the partitions of topics that the member no longer subscribes to, at its epoch."""
    unsubscribed = {n: e for n, e in current.assigned.items() if not is_subscribed(n)}
    if not unsubscribed:
        return current
    assigned = {n: e for n, e in current.assigned.items() if n not in unsubscribed}
    pending = {**current.pending_revocation, **unsubscribed}
    if _owns_any(owned, pending):
        return AssignmentState(
            current.member_epoch,
            current.member_epoch,
            MemberState.UNREVOKED_PARTITIONS,
            assigned,
            pending,
        )
    return AssignmentState(
        current.member_epoch,
        current.member_epoch,
        current.state,
        assigned,
        current.pending_revocation,
    )


def _move_towards(
    current: AssignmentState,
    epoch: int,
    target: Collection[int],
    target_epoch: int,
    is_subscribed: Callable[[int], bool],
    is_free: Callable[[int], bool],
    *,
    owned: Collection[int] | None,
    withheld: Set[int],
) -> AssignmentState:
    wanted = {number for number in target if is_subscribed(number)}
    kept = {n: e for n, e in current.assigned.items() if n in wanted and n not in withheld}
    revoked = {n: e for n, e in current.assigned.items() if n not in kept}
    if revoked and _owns_any(owned, revoked):
        return AssignmentState(
            epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked
        )
    # Partitions pending revocation by this member have no other owner: assign them again instead
    # of waiting for a release by another member that never comes (KAFKA-19449).
    unreleased = False
    for number in wanted:
        if number in kept:
            continue
        if number in withheld:
            unreleased = True
        elif is_free(number) or number in current.pending_revocation:
            kept[number] = target_epoch
        else:
            unreleased = True
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return AssignmentState(target_epoch, current.member_epoch, state, kept, {})
