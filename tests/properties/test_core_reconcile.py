"""Laws of the reconciliation of one member, for any current, target and word of the client."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.consumer.reconcile import (
    AssignmentState,
    compute_kept_state,
    compute_next_assignment_state,
)
from model.errors import FencedMemberEpoch
from model.log.records import MemberState

NUMBERS = st.frozensets(st.integers(0, 7))
STATES = [MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS]


@dataclass(frozen=True)
class Case:
    current: AssignmentState
    target: frozenset[int]
    target_epoch: int
    subscribed: frozenset[int]
    free: frozenset[int]
    owned: frozenset[int] | None
    has_subscription_changed: bool

    def next(self, current: AssignmentState | None = None) -> AssignmentState:
        return compute_next_assignment_state(
            current or self.current,
            target=self.target,
            target_epoch=self.target_epoch,
            is_subscribed=self.subscribed.__contains__,
            is_free=self.free.__contains__,
            owned=self.owned,
            has_subscription_changed=self.has_subscription_changed,
        )

    @property
    def wanted(self) -> frozenset[int]:
        return self.target & self.subscribed

    @property
    def held(self) -> set[int]:
        return held(self.current)


def held(current: AssignmentState) -> set[int]:
    return {*current.assigned, *current.pending_revocation}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any case that the state machine could be asked for, reachable or not."""
    target_epoch = draw(st.integers(1, 6))
    epoch = draw(st.integers(0, target_epoch))
    assigned = draw(NUMBERS)
    state = draw(st.sampled_from(STATES))
    pending = frozenset[int]()
    if state is MemberState.UNREVOKED_PARTITIONS:
        pending = draw(st.frozensets(st.integers(0, 7), min_size=1))
        assigned -= pending
    current = AssignmentState(
        epoch,
        draw(st.integers(-1, epoch)),
        state,
        {number: draw(st.integers(0, epoch)) for number in sorted(assigned)},
        {number: draw(st.integers(0, epoch)) for number in sorted(pending)},
    )
    return Case(
        current,
        draw(NUMBERS),
        target_epoch,
        draw(NUMBERS | st.just(frozenset(range(8)))),
        draw(NUMBERS) - assigned - pending,
        draw(st.none() | NUMBERS),
        draw(st.booleans()),
    )


@given(cases())
@settings(max_examples=400)
def test_it_grants_only_what_is_free_and_what_the_target_gives(case: Case) -> None:
    """S1: what was not the member's before is free now."""
    granted = held(case.next()) - case.held
    assert granted <= case.free
    assert granted <= case.wanted


@given(cases())
@settings(max_examples=400)
def test_it_takes_nothing_that_the_client_has_not_given_up(case: Case) -> None:
    """S3: what the member loses, it said that it does not own."""
    lost = case.held - held(case.next())
    if lost:
        assert case.owned is not None
        assert not lost & case.owned


@given(cases())
@settings(max_examples=400)
def test_it_raises_the_epoch_only_when_there_is_nothing_to_give_up(case: Case) -> None:
    """S7."""
    following = case.next()
    assert following.member_epoch in (case.current.member_epoch, case.target_epoch)
    if following.member_epoch > case.current.member_epoch:
        assert not following.pending_revocation
        assert set(following.assigned) <= case.wanted


@given(cases())
@settings(max_examples=400)
def test_while_it_revokes_it_gets_nothing(case: Case) -> None:
    following = case.next()
    if following.state is MemberState.UNREVOKED_PARTITIONS:
        assert following.pending_revocation
        assert set(following.assigned) <= set(case.current.assigned)
    else:
        assert not following.pending_revocation


@given(cases())
@settings(max_examples=400)
def test_what_is_kept_keeps_its_epoch_and_what_is_granted_gets_the_targets(case: Case) -> None:
    """KIP-1251: an older epoch may commit for what was held since then."""
    following = case.next()
    for number, epoch in following.assigned.items():
        if number in case.current.assigned:
            assert epoch == case.current.assigned[number]
        else:
            assert epoch == case.target_epoch
    for number, epoch in following.pending_revocation.items():
        before = {**case.current.assigned, **case.current.pending_revocation}
        assert epoch == before[number]


@given(cases())
@settings(max_examples=400)
def test_a_stable_member_that_has_its_target_gets_its_epoch_alone(case: Case) -> None:
    current = replace(
        case.current,
        member_epoch=case.target_epoch - 1,
        state=MemberState.STABLE,
        pending_revocation={},
    )
    kept = replace(
        case,
        current=current,
        target=frozenset(current.assigned),
        subscribed=frozenset(range(8)),
        has_subscription_changed=False,
    )
    assert kept.next() == compute_kept_state(current, case.target_epoch)


@given(cases())
@settings(max_examples=400)
def test_asking_again_moves_nothing(case: Case) -> None:
    """S28: the same heartbeat again finds everything done."""
    once = case.next()
    twice = case.next(once)
    assert (once.member_epoch, once.state) == (twice.member_epoch, twice.state)
    assert once.assigned == twice.assigned
    assert once.pending_revocation == twice.pending_revocation


@given(cases())
@settings(max_examples=400)
def test_a_client_that_owns_nothing_is_moved_on(case: Case) -> None:
    """L1: nothing but what others hold keeps it from the target."""
    quiet = Case(
        case.current,
        case.target,
        case.target_epoch,
        case.subscribed,
        case.free,
        frozenset(),
        False,
    )
    is_there = case.current.member_epoch == case.target_epoch
    if case.current.state is MemberState.STABLE and is_there:
        return
    following = quiet.next()
    assert following.member_epoch == case.target_epoch
    missing = case.wanted - set(following.assigned)
    assert not missing & (case.free | set(case.current.pending_revocation))
    waits = following.state is MemberState.UNRELEASED_PARTITIONS
    assert waits == bool(missing)


@given(cases())
@settings(max_examples=200)
def test_an_unknown_state_is_fenced_unless_nothing_is_owned(case: Case) -> None:
    current = AssignmentState(
        case.current.member_epoch,
        case.current.previous_member_epoch,
        MemberState.UNKNOWN,
        case.current.assigned,
        {},
    )
    try:
        case.next(current)
    except FencedMemberEpoch:
        assert case.owned is None or case.owned
    else:
        assert case.owned == frozenset()
