"""What is a difference between two sides, and what is none; a seed gives one sequence."""

from __future__ import annotations

import pytest

from muster.assignors.embedded.consumer_protocol import encode_subscription, make_subscription
from tests.differential.generator import STEPS, generate, has_patterns
from tests.differential.seen import (
    ClassicRow,
    ClassicView,
    GroupView,
    MemberView,
    Mode,
    Moves,
    Places,
    Seen,
    compute_moves,
    compute_with_ranges,
    find_difference,
    forget_assignments,
    forget_epochs,
    is_ahead,
    is_by_leader,
    is_told_anew,
    is_waiting,
)


def make_places(*partitions: int) -> Places:
    return frozenset(("t", partition) for partition in partitions)


def make_group(state: str = "Stable", **members: tuple[int, ...]) -> GroupView:
    """Members by name with the partitions that they have."""
    views = {
        name: MemberView(3, "", frozenset({"t"}), "", make_places(*has), make_places(*has))
        for name, has in members.items()
    }
    return GroupView(0, state, 3, 3, "uniform", views)


def compare_settled(kafka: GroupView, muster: GroupView, moves: Moves | None = None) -> str | None:
    sides = (Seen((), group=view, is_settled=True) for view in (kafka, muster))
    return find_difference(Mode.QUALITY, *sides, is_range=False, moves=moves)


@pytest.mark.parametrize(
    ("muster", "modes"),
    [
        (Seen((25,)), tuple(Mode)),
        (Seen((0,), 3, rest=(1,)), tuple(Mode)),
        (Seen((0,), 4), (Mode.EXACT, Mode.QUALITY)),
        (Seen((0,), 3, make_places(0)), (Mode.EXACT,)),
    ],
)
def test_answers_differ(muster: Seen, modes: tuple[Mode, ...]) -> None:
    kafka = Seen((0,), 3)
    for mode in Mode:
        found = find_difference(mode, kafka, muster, is_range=True)
        assert (found is not None) == (mode in modes), mode
        assert find_difference(mode, kafka, kafka, is_range=True) is None


def test_groups_differ_unless_kafka_waits_for_a_heartbeat() -> None:
    kafka, muster = make_group(a=(0, 1)), make_group(a=(1, 0), b=())
    assert find_difference(Mode.EXACT, Seen((), group=kafka), Seen((), group=muster), is_range=True)
    assigning = kafka._replace(state="Assigning", assignment_epoch=2)
    assert (
        find_difference(Mode.EXACT, Seen((), group=assigning), Seen((), group=kafka), is_range=True)
        is None
    )
    held = kafka._replace(members=make_group(a=(0,)).members)
    assert find_difference(
        Mode.EXACT, Seen((), group=assigning), Seen((), group=held), is_range=True
    )


def test_assignments_are_compared_by_validity_balance_and_moves() -> None:
    kafka = make_group(a=(0, 1), b=(2,))
    assert compare_settled(kafka, make_group(a=(0,), b=(1, 2))) is None
    assert "two members" in str(compare_settled(kafka, make_group(a=(0, 1, 2), b=(2,))))
    assert "held" in str(compare_settled(kafka, make_group(a=(0,), b=(2,))))
    assert "balance" in str(compare_settled(kafka, make_group(a=(0, 1, 2), b=())))
    assert compare_settled(make_group(a=(0, 1, 2), b=()), kafka) is None
    assert "moved" in str(compare_settled(kafka, kafka, Moves(1, 2, 1)))
    assert compare_settled(kafka, kafka, Moves(1, 2, 2)) is None


def test_a_sync_on_a_consumer_group_may_name_another_of_the_members_protocols() -> None:
    kafka = Seen((), answers=(("c0.0", "sync", 23, None, None, []),))
    muster = Seen((), answers=(("c0.0", "sync", 0, "consumer", "range", [("t", 0)]),))
    assert find_difference(Mode.SETTLED, kafka, muster, is_range=True) is None
    assert find_difference(Mode.EXACT, kafka, muster, is_range=True)
    assert find_difference(Mode.SETTLED, muster, kafka, is_range=True)


def test_members_may_be_a_generation_behind_in_kafka_alone() -> None:
    def say(generation: int, *partitions: int) -> bytes:
        owned = [("t", partition) for partition in partitions]
        return encode_subscription(make_subscription(["t"], None, owned, generation))

    def see(said: bytes) -> list[Seen]:
        row = ClassicRow("c0.0", "", "c0.0", said, b"")
        view = ClassicView(0, "Stable", "consumer", "cooperative-sticky", (row,))
        return [Seen((), rest=view), Seen((), roster=(("c0.0", said),))]

    def differs(kafka: bytes, muster: bytes, mode: Mode = Mode.SETTLED) -> set[bool]:
        pairs = zip(see(kafka), see(muster), strict=True)
        return {find_difference(mode, *pair, is_range=True) is not None for pair in pairs}

    assert differs(say(5, 0), say(6, 0)) == {False}
    assert differs(say(6, 0), say(5, 0)) == {True}
    assert differs(say(5, 0), say(6, 1)) == {True}
    assert differs(say(-1), say(6)) == {True}
    assert differs(b"", say(6)) == {True}
    assert differs(say(5, 0), say(6, 0), Mode.EXACT) == {True}


def test_moves_are_from_members_that_are_still_there() -> None:
    before, after = make_group(a=(0, 1, 2), c=(3,)), make_group(a=(0, 1), b=(2, 3))
    assert compute_moves((before, before), (after, after)) == Moves(1, 1, 1)
    needless = make_group(a=(2, 3), b=(0, 1))
    assert compute_moves((before, before), (after, needless)) == Moves(1, 2, 1)


def test_a_seed_gives_one_sequence() -> None:
    for seed in range(40):
        sequence = generate(seed)
        assert sequence == generate(seed)
        assert len(sequence.steps) == STEPS
    assert {generate(seed).mode for seed in range(40)} == set(Mode)
    assert any(map(has_patterns, range(40)))


def test_kafka_alone_leaves_members_with_what_they_do_not_want() -> None:
    wants = make_group(a=(0, 1))
    named = wants.members["a"]._replace(topics=frozenset({"s5.1-t"}))
    wants = wants._replace(members={"a": named})
    member = wants.members["a"]._replace(topics=frozenset({"other"}))
    has_unwanted = wants._replace(group_epoch=2, members={"a": member})
    again = named._replace(target=frozenset({("t'", 0)}))
    wants_again = wants._replace(members={"a": again})
    for mode, kafka, muster, differs in (
        (Mode.SETTLED, has_unwanted, wants, False),
        (Mode.SETTLED, has_unwanted, wants_again, False),
        (Mode.SETTLED, wants, has_unwanted, True),
        (Mode.SETTLED, has_unwanted, has_unwanted, True),
        (Mode.EXACT, has_unwanted, wants, True),
    ):
        sides = (Seen((), group=view, is_settled=True) for view in (kafka, muster))
        assert (find_difference(mode, *sides, is_range=True) is not None) == differs


def test_muster_is_an_epoch_ahead_where_it_told_all_members_what_they_have() -> None:
    group = make_group(a=(0, 1))
    kafka = Seen((), group=group, is_settled=True)
    epoch = group.group_epoch
    one, two = (kafka._replace(group=group._replace(group_epoch=epoch + n)) for n in (1, 2))
    assert is_told_anew(Mode.SETTLED, kafka, one)
    assert not is_told_anew(Mode.SETTLED, kafka, kafka)
    assert not is_told_anew(Mode.SETTLED, kafka, two)
    assert not is_told_anew(Mode.SETTLED, one, kafka)
    assert not is_told_anew(Mode.EXACT, kafka, one)
    assert not is_told_anew(Mode.SETTLED, kafka._replace(is_settled=False), one)


def test_what_a_leader_gave_is_compared_as_the_ranges_of_a_new_epoch() -> None:
    mode = Mode.SETTLED
    ranges, wrong, short = (
        Seen((), group=make_group(a=given, b=more), is_settled=True)
        for given, more in (((0, 1, 2), (3, 4)), ((0, 1), (2, 3, 4)), ((0, 1, 2), (3,)))
    )
    kafka = Seen((), group=make_group(a=(0, 2, 4), b=(1, 3)), is_settled=True)
    assert find_difference(mode, kafka, ranges, is_range=True) is not None
    assert is_by_leader(mode, kafka, ranges)
    for muster, differs in ((ranges, False), (wrong, True), (short, True), (kafka, True)):
        expected = compute_with_ranges(kafka, muster)
        assert (find_difference(mode, expected, muster, is_range=True) is not None) == differs
    assert not is_by_leader(mode, ranges, kafka)
    assert not is_by_leader(Mode.EXACT, kafka, ranges)
    assert not is_by_leader(mode, kafka._replace(is_settled=False), ranges)


def test_ranges_are_given_to_static_members_first() -> None:
    kafka = make_group(a=(0, 1), b=(2,))
    instance = kafka.members["b"]._replace(instance_id="i")
    kafka = kafka._replace(members={**kafka.members, "b": instance})
    seen = Seen((), group=kafka, is_settled=True)
    group = compute_with_ranges(seen, seen).group
    assert group is not None
    assert group.members["b"].target == group.members["b"].assigned == make_places(0, 1)
    assert group.members["a"].target == make_places(2)


def test_muster_is_an_epoch_ahead_where_kafka_left_a_member_with_what_it_does_not_want() -> None:
    group = make_group(a=(0, 1))
    member = group.members["a"]._replace(topics=frozenset({"other"}))
    unwanted = group._replace(members={"a": member})
    settled = Seen((), group=unwanted, is_settled=True)
    assert is_ahead(Mode.SETTLED, settled)
    assert not is_ahead(Mode.EXACT, settled)
    assert not is_ahead(Mode.SETTLED, settled._replace(group=group))

    ahead = {"a": group.members["a"]._replace(member_epoch=4)}
    kafka = Seen(
        (), group=group, is_settled=True, answers=(("a", "join", 0, 3, None, "range", "a"),)
    )
    muster = kafka._replace(
        group=group._replace(group_epoch=4, assignment_epoch=4, members=ahead),
        answers=(("a", "join", 0, 4, None, "range", "a"),),
    )
    sides = forget_epochs(kafka), forget_epochs(muster)
    assert find_difference(Mode.SETTLED, kafka, muster, is_range=True) is not None
    assert find_difference(Mode.SETTLED, *sides, is_range=True) is None
    other = forget_epochs(muster._replace(answers=(("a", "join", 25, 4, None, "range", ""),)))
    assert find_difference(Mode.SETTLED, sides[0], other, is_range=True) is not None


def test_kafka_gives_nothing_while_it_waits_for_a_heartbeat() -> None:
    group = make_group("Assigning", a=())
    kafka = Seen((), group=group, is_settled=True)
    assert is_waiting(Mode.SETTLED, kafka)
    assert not is_waiting(Mode.EXACT, kafka)
    assert not is_waiting(Mode.SETTLED, kafka._replace(group=make_group(a=())))

    theirs = Seen((), answers=(("a", "sync", 0, "consumer", "range", []),))
    ours = Seen((), answers=(("a", "sync", 0, "consumer", "range", [("t", 0)]),))
    refused = Seen((), answers=(("a", "sync", 27, "consumer", "range", []),))
    assert find_difference(Mode.SETTLED, theirs, ours, is_range=True) is not None
    sides = forget_assignments(theirs), forget_assignments(ours)
    assert find_difference(Mode.SETTLED, *sides, is_range=True) is None
    sides = forget_assignments(theirs), forget_assignments(refused)
    assert find_difference(Mode.SETTLED, *sides, is_range=True) is not None
    # Who was given more is behind until it has given it up.
    ahead = Seen((), answers=(("a", "join", 0, 8, "consumer", "range", "a"),))
    behind = Seen((), answers=(("a", "join", 0, 7, "consumer", "range", "a"),))
    assert find_difference(Mode.SETTLED, ahead, behind, is_range=True) is not None
    sides = forget_assignments(ahead), forget_assignments(behind)
    assert find_difference(Mode.SETTLED, *sides, is_range=True) is None
