"""Laws of the classic assignors, over small groups, beside the best answer that there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from muster.assignors.classic import CLASSIC_ASSIGNORS, GroupAssignment, Member, compute_assignment
from muster.assignors.classic.claims import find_claims
from muster.assignors.classic.group import number_group
from tests.support.assignors.classic.groups import (
    compute_balance_score,
    compute_figures,
    count_partitions,
    find_holders,
    legal_partitions,
    own,
    pairs,
)
from tests.support.assignors.fairest import assign_fairest

law = settings(max_examples=80)
TOPICS = ("t", "u", "v")
Counts = dict[str, int]
Case = tuple[list[Member], Counts]


@st.composite
def cases(
    draw: st.DrawFn, *, most_members: int = 5, most_partitions: int = 5, disputed: bool = True
) -> Case:
    """Members with mixed subscriptions who own something of several generations, or nothing."""
    counts = {topic: draw(st.integers(0, most_partitions)) for topic in TOPICS}
    size = draw(st.integers(1, most_members))
    topics = st.lists(st.sampled_from(TOPICS), unique=True)
    same = draw(st.none() | topics)
    static = draw(st.booleans())
    claims: list[dict[str, list[int]]] = [{} for _ in range(size)]
    for topic, count in counts.items():
        for partition in range(count):
            who = draw(st.sets(st.integers(0, size - 1), max_size=3 if disputed else 1))
            for member in who:
                claims[member].setdefault(topic, []).append(partition)
    members = [
        Member(
            f"m{i}",
            draw(topics) if same is None else same,
            f"i{9 - i}" if static and draw(st.booleans()) else None,
            owned=claims[i],
            generation=draw(st.integers(-1, 2)) if disputed else 1,
        )
        for i in range(size)
    ]
    return members, counts


BETWEEN_THE_EXTREMES: Case = (
    [
        Member("m0", ["t"]),
        Member("m1", ["u"]),
        Member("m2", ["t", "u"], owned={"t": [0]}, generation=1),
        Member("m3", ["u"], owned={"u": [0, 3]}, generation=1),
        Member("m4", ["t"]),
    ],
    {"t": 1, "u": 4},
)
"""One member has nothing and one has two, whatever is done; in between there is more to even."""

MOVES_TO_SAVE: Case = (
    [
        Member("m0", ["t", "u", "v"], owned={"u": [1, 2, 3], "v": [2]}, generation=1),
        Member("m1", ["t"], owned={"u": [0], "v": [1, 3, 5]}, generation=1),
        Member("m2", ["u", "v"], owned={"t": [3], "v": [0]}, generation=1),
        Member("m3", ["t", "u", "v"], owned={"t": [1]}, generation=1),
        Member("m4", ["t"], owned={"t": [2], "v": [4]}, generation=1),
    ],
    {"t": 5, "u": 4, "v": 6},
)
"""The first way to even it out takes more from owners than is needed."""


def undisputed(**sizes: int) -> st.SearchStrategy[Case]:
    return cases(disputed=False, **sizes)


def is_balanced(members: list[Member], assignment: GroupAssignment) -> bool:
    """KIP-54: no partition can go to a subscriber that has two or more fewer."""
    loads = count_partitions(assignment)
    return all(
        loads[holder] - loads[other.member_id] <= 1
        for holder, topics in assignment.items()
        for topic in topics
        for other in members
        if topic in other.topics
    )


@law
@given(cases(), st.sampled_from(list(CLASSIC_ASSIGNORS)))
def test_complete_and_legal(case: Case, name: str) -> None:
    members, counts = case
    assignment = compute_assignment(name, members, counts)
    holders = find_holders(members, counts, assignment)
    assert all(len(who) == 1 for who in holders.values())
    missing = legal_partitions(members, counts) - holders.keys()
    if name == "cooperative-sticky":
        claimed = {each for member in members for each in pairs(member.owned)}
        assert missing <= claimed
    else:
        assert not missing


@law
@given(cases().flatmap(lambda c: st.tuples(st.just(c), st.permutations(c[0]))), st.data())
def test_the_order_in_which_things_are_given_does_not_matter(
    case: tuple[Case, list[Member]], data: st.DataObject
) -> None:
    (members, counts), permuted = case
    shuffled = [
        Member(
            member.member_id,
            data.draw(st.permutations(list(member.topics))),
            member.instance_id,
            owned={
                topic: data.draw(st.permutations(list(member.owned[topic])))
                for topic in data.draw(st.permutations(list(member.owned)))
            },
            generation=member.generation,
        )
        for member in permuted
    ]
    reordered = {topic: counts[topic] for topic in data.draw(st.permutations(list(counts)))}
    for name in (*CLASSIC_ASSIGNORS, "redundant(2)"):
        expected = compute_assignment(name, members, counts)
        assert compute_assignment(name, shuffled, reordered) == expected, name


@law
@given(cases())
def test_sticky_is_balanced_or_unmovable(case: Case) -> None:
    members, counts = case
    assert is_balanced(members, compute_assignment("sticky", members, counts))


@law
@given(undisputed(), st.sampled_from(["sticky", "cooperative-sticky"]))
def test_a_balanced_group_is_left_alone(case: Case, name: str) -> None:
    members, counts = case
    balanced = compute_assignment("sticky", members, counts)
    assert compute_assignment(name, own(members, balanced, 2), counts) == balanced


@law
@given(cases())
def test_cooperative_sticky_comes_to_rest(case: Case) -> None:
    """After the first round everybody owns what it was given; the next one gives out the rest."""
    members, counts = case
    for generation in (1, 2, 3):
        assignment = compute_assignment("cooperative-sticky", members, counts)
        members = own(members, assignment, generation)
    assert find_holders(members, counts, assignment).keys() == legal_partitions(members, counts)
    assert is_balanced(members, assignment)
    assert compute_assignment("cooperative-sticky", members, counts) == assignment


@law
@given(cases())
def test_cooperative_sticky_never_gives_what_another_may_still_have(case: Case) -> None:
    """Unless that one's claim is older than the holder's own: then it is mistaken."""
    members, counts = case
    claimants: dict[tuple[str, int], dict[str, int]] = {}
    for member in members:
        for each in pairs(member.owned):
            claimants.setdefault(each, {})[member.member_id] = member.generation
    assignment = compute_assignment("cooperative-sticky", members, counts)
    for holder, topics in assignment.items():
        for each in pairs(topics):
            others = dict(claimants.get(each, {}))
            mine = others.pop(holder, None)
            assert all(mine is not None and mine > other for other in others.values())


@law
@given(undisputed())
def test_cooperative_sticky_takes_nothing_without_need(case: Case) -> None:
    """With equal subscriptions the fewest that balance needs, as in one step."""
    members, counts = case
    assume(len({frozenset(member.topics) for member in members}) == 1)
    at_once = compute_figures(members, counts, compute_assignment("sticky", members, counts))
    withheld = compute_figures(
        members, counts, compute_assignment("cooperative-sticky", members, counts)
    )
    assert withheld[2] == at_once[2]


RACKS = ("east", "west", "north")


@law
@given(cases(), st.sampled_from(["sticky", "cooperative-sticky"]), st.data())
def test_nearness_costs_neither_balance_nor_moves(
    case: Case, name: str, data: st.DataObject
) -> None:
    members, counts = case
    in_racks = [
        replace(member, rack=data.draw(st.sampled_from([*RACKS, None]))) for member in members
    ]
    racks = {
        topic: data.draw(st.lists(st.sets(st.sampled_from(RACKS)), min_size=count, max_size=count))
        for topic, count in counts.items()
    }
    near = compute_assignment(name, in_racks, counts, racks)
    anywhere = compute_assignment(name, in_racks, counts)
    assert count_partitions(near) == count_partitions(anywhere)
    figures = compute_figures(members, counts, near)
    assert figures == compute_figures(members, counts, anywhere)


@settings(law, max_examples=60)
@given(undisputed(most_members=3, most_partitions=2))
def test_sticky_is_the_best_that_there_is(case: Case) -> None:
    """Against every assignment there can be: smallest balance score, then fewest moves."""
    members, counts = case
    current = {member.member_id: dict(member.owned) for member in members}
    assignment = compute_assignment("sticky", members, counts)
    figures = compute_figures(members, counts, assignment)
    best = min(compute_figures(members, counts, each) for each in all_assignments(members, counts))
    if figures != best:
        assert {m: pairs(t) for m, t in assignment.items()} == {
            m: pairs(t) for m, t in current.items()
        }
        assert is_balanced(members, assignment)


@law
@given(undisputed())
@example(BETWEEN_THE_EXTREMES)
@example(MOVES_TO_SAVE)
def test_sticky_is_as_even_as_any_and_then_moves_as_little(case: Case) -> None:
    """Against a minimum cost flow, which knows the best for groups too large to try all."""
    members, counts = case
    group = number_group(members, counts)
    problem = group.make_problem(find_claims(group).owner)
    fairest = group.name_target(np.array(assign_fairest(problem), dtype=np.int32))
    assignment = compute_assignment("sticky", members, counts)
    figures = compute_figures(members, counts, assignment)
    if figures != compute_figures(members, counts, fairest):
        assert {m: pairs(t) for m, t in assignment.items() if t} == {
            member.member_id: pairs(member.owned) for member in members if member.owned
        }
        assert is_balanced(members, assignment)


def all_assignments(members: list[Member], counts: Mapping[str, int]) -> list[GroupAssignment]:
    legal = sorted(legal_partitions(members, counts))
    who = [[m.member_id for m in members if topic in m.topics] for topic, _ in legal]
    found = []
    for holders in product(*who):
        assignment: GroupAssignment = {member.member_id: {} for member in members}
        for (topic, partition), holder in zip(legal, holders, strict=True):
            assignment[holder].setdefault(topic, []).append(partition)
        found.append(assignment)
    return found


@law
@given(cases())
def test_range_is_even_topic_by_topic_and_roundrobin_over_all(case: Case) -> None:
    members, counts = case
    by_range = compute_assignment("range", members, counts)
    for topic in TOPICS:
        each = [
            len(by_range[member.member_id].get(topic, ()))
            for member in members
            if topic in member.topics
        ]
        assert max(each, default=0) - min(each, default=0) <= 1
        for topics in by_range.values():
            partitions = topics.get(topic, [])
            assert all(after - before == 1 for before, after in pairwise(partitions))
    if len({frozenset(member.topics) for member in members}) == 1:
        loads = count_partitions(compute_assignment("roundrobin", members, counts)).values()
        assert max(loads) - min(loads) <= 1


@law
@given(cases(), st.integers(1, 4))
def test_redundant_gives_each_partition_to_so_many(case: Case, copies: int) -> None:
    members, counts = case
    name = f"redundant({copies})"
    assignment = compute_assignment(name, members, counts)
    holders = find_holders(members, counts, assignment)
    for topic, partition in legal_partitions(members, counts):
        subscribers = sum(topic in member.topics for member in members)
        assert len(set(holders[topic, partition])) == min(copies, subscribers)
        assert len(holders[topic, partition]) == min(copies, subscribers)
    loads = count_partitions(assignment)
    for (topic, _), who in holders.items():
        for other in members:
            if topic in other.topics and other.member_id not in who:
                assert max(loads[m] for m in who) - loads[other.member_id] <= 1
    assert compute_assignment(name, own(members, assignment, 3), counts) == assignment


@law
@given(st.lists(st.integers(0, 30)))
def test_the_balance_score_is_the_sum_over_pairs(loads: list[int]) -> None:
    expected = sum(abs(a - b) for i, a in enumerate(loads) for b in loads[:i])
    assert compute_balance_score(loads) == expected
