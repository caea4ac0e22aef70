"""The way of a member to the target: one pure function (Kafka's ``CurrentAssignmentBuilder``).

A member gives up what the target gives to others before it gets a new epoch, and it gets only
what nobody holds. The client's word that it gave up (``owned``) is what moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import assert_never

from model.errors import FencedMemberEpoch
from model.log.records import MemberState
from model.value import value


@value
class Standing:
    """Where a member stands. Partitions are numbers, each with its assignment epoch (KIP-1251)."""

    member_epoch: int
    previous_member_epoch: int
    state: MemberState
    assigned: Mapping[int, int]
    pending_revocation: Mapping[int, int]


def compute_next_standing(
    standing: Standing,
    *,
    target: Collection[int],
    target_epoch: int,
    is_subscribed: Callable[[int], bool],
    is_free: Callable[[int], bool],
    owned: Collection[int] | None,
    has_subscription_changed: bool,
) -> Standing:
    """The next standing of a member; the same object where nothing moves.

    ``target``: what the target gives it. ``is_subscribed``: whether it (still) subscribes to
    the topic of a partition. ``is_free``: whether nobody holds the partition. ``owned``: what
    the client says that it owns, ``None`` where it does not say. Raises ``FencedMemberEpoch``
    for a member in a state that this version does not know, unless it owns nothing.
    """
    match standing.state:
        case MemberState.STABLE:
            if standing.member_epoch != target_epoch:
                epoch = standing.member_epoch
            elif has_subscription_changed:
                return _revoke_unsubscribed(standing, is_subscribed, owned)
            else:
                return standing
        case MemberState.UNREVOKED_PARTITIONS:
            if _owns_any(owned, standing.pending_revocation):
                if has_subscription_changed:
                    return _revoke_unsubscribed(standing, is_subscribed, owned)
                return standing
            epoch = standing.member_epoch
        case MemberState.UNRELEASED_PARTITIONS:
            epoch = standing.member_epoch
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise FencedMemberEpoch(
                    "The member is in a state that this coordinator does not know; "
                    "it must give up all its partitions and rejoin."
                )
            epoch = target_epoch
        case _:
            assert_never(standing.state)
    return _move_towards(standing, epoch, target, target_epoch, is_subscribed, is_free, owned=owned)


def compute_kept_standing(standing: Standing, target_epoch: int) -> Standing:
    """``compute_next_standing`` of a stable member that has what the target of that epoch gives
    it: the way of most members of a group whenever one comes or goes."""
    return Standing(target_epoch, standing.member_epoch, MemberState.STABLE, standing.assigned, {})


def _owns_any(owned: Collection[int] | None, revoked: Collection[int]) -> bool:
    """Whether the client may still own a revoked partition; one that does not say may."""
    if owned is None:
        return True
    return any(number in revoked for number in owned)


def _revoke_unsubscribed(
    standing: Standing, is_subscribed: Callable[[int], bool], owned: Collection[int] | None
) -> Standing:
    """The target stays, but what the member no longer subscribes to is revoked at once."""
    unsubscribed = {n: e for n, e in standing.assigned.items() if not is_subscribed(n)}
    if not unsubscribed:
        return standing
    assigned = {n: e for n, e in standing.assigned.items() if n not in unsubscribed}
    pending = {**standing.pending_revocation, **unsubscribed}
    if _owns_any(owned, pending):
        return Standing(
            standing.member_epoch,
            standing.member_epoch,
            MemberState.UNREVOKED_PARTITIONS,
            assigned,
            pending,
        )
    return Standing(
        standing.member_epoch,
        standing.member_epoch,
        standing.state,
        assigned,
        standing.pending_revocation,
    )


def _move_towards(
    standing: Standing,
    epoch: int,
    target: Collection[int],
    target_epoch: int,
    is_subscribed: Callable[[int], bool],
    is_free: Callable[[int], bool],
    *,
    owned: Collection[int] | None,
) -> Standing:
    wanted = {number for number in target if is_subscribed(number)}
    kept = {n: e for n, e in standing.assigned.items() if n in wanted}
    revoked = {n: e for n, e in standing.assigned.items() if n not in wanted}
    if revoked and _owns_any(owned, revoked):
        return Standing(
            epoch, standing.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked
        )
    # What is in the member's own pending revocation is its own, not another's: it may be taken
    # back without waiting for a release that nobody else will make (KAFKA-19449).
    unreleased = False
    for number in wanted:
        if number in kept:
            continue
        if is_free(number) or number in standing.pending_revocation:
            kept[number] = target_epoch
        else:
            unreleased = True
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return Standing(target_epoch, standing.member_epoch, state, kept, {})
