"""Laws of the assignors, over groups small enough for a slow model to know the best answer."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muster.assignors.problem import NOBODY, Members, Problem, Subscriptions
from muster.assignors.range import assign_range
from muster.assignors.registry import ASSIGNORS
from muster.assignors.uniform.uniform_assignor import assign_uniform
from tests.support.assignors.cases import (
    check_valid,
    compute_loads,
    compute_spread,
    count_moves,
    is_locally_balanced,
    make_problem,
    subscriber_table,
)
from tests.support.assignors.fairest import assign_fairest

law = settings(max_examples=150)


@st.composite
def problems(
    draw: st.DrawFn, *, owned: bool = True, min_members: int = 1, partitions_max: int = 6
) -> Problem:
    counts = draw(st.lists(st.integers(0, partitions_max), min_size=1, max_size=5))
    topics = range(len(counts))
    same = draw(st.booleans())
    lists = st.lists(st.sampled_from(topics), unique=True)
    some = draw(st.lists(lists, min_size=min_members, max_size=6))
    chosen = [list(topics)] * len(some) if same else some
    members = [NOBODY, *range(len(chosen))] if owned else [NOBODY]
    owner = draw(
        st.lists(st.sampled_from(members), min_size=sum(counts), max_size=sum(counts))
        | st.sampled_from(members).map(lambda member: [member] * sum(counts))
    )
    return make_problem(counts, chosen, owner)


def with_owner(problem: Problem, owner: Members) -> Problem:
    return Problem(problem.topic_start, problem.members, owner, problem.subscriptions)


def keep_live_owners(problem: Problem) -> Problem:
    """The same with NOBODY for owners that do not subscribe."""
    subscribers = subscriber_table(problem)
    owner = problem.owner.copy()
    for partition, topic in enumerate(problem.topic_of_partition()):
        if owner[partition] not in subscribers[topic]:
            owner[partition] = NOBODY
    return with_owner(problem, owner)


def unevenness(problem: Problem, target: Members) -> int:
    return int((compute_loads(problem, target) ** 2).sum())


@law
@given(problems(min_members=0))
def test_valid_complete_and_deterministic(problem: Problem) -> None:
    for array in (problem.owner, problem.topic_start):
        array.setflags(write=False)
    for assignor in ASSIGNORS.values():
        target = assignor.assign(problem)
        check_valid(problem, target)
        assert assignor.assign(problem).tolist() == target.tolist()


@law
@given(problems())
def test_uniform_is_balanced(problem: Problem) -> None:
    target = assign_uniform(problem)
    assert is_locally_balanced(problem, target)
    if problem.subscriptions.is_homogeneous:
        assert compute_spread(problem, target) <= 1


@law
@given(problems(owned=False))
def test_a_first_assignment_is_as_even_as_any(problem: Problem) -> None:
    fairest = np.array(assign_fairest(problem), dtype=np.int32)
    assert unevenness(problem, assign_uniform(problem)) == unevenness(problem, fairest)


@law
@given(problems())
@example(make_problem([2, 1], [[0], [0, 1], [1]], [0, 0, 1]))
@example(make_problem([9, 22], [[0], [0, 1], [1]], [0] * 9 + [1] * 10 + [2] * 11 + [-1]))
def test_uniform_is_as_even_as_any_and_then_moves_as_little(problem: Problem) -> None:
    problem = keep_live_owners(problem)
    target = assign_uniform(problem)
    fairest = np.array(assign_fairest(problem), dtype=np.int32)
    assert _active_spread(problem, target) == _active_spread(problem, fairest)
    if unevenness(problem, target) == unevenness(problem, fairest):
        assert count_moves(problem, target) == count_moves(problem, fairest)
    else:
        assert count_moves(problem, target) < count_moves(problem, fairest)


def _active_spread(problem: Problem, target: Members) -> int:
    """The spread among members that subscribe to anything with partitions."""
    subscribers = subscriber_table(problem)
    active = {m for topic in problem.topic_of_partition() for m in subscribers[topic]}
    loads = [int(compute_loads(problem, target)[m]) for m in active]
    return max(loads, default=0) - min(loads, default=0)


@law
@given(problems())
def test_a_uniform_assignment_is_a_fixed_point(problem: Problem) -> None:
    target = assign_uniform(problem)
    assert assign_uniform(with_owner(problem, target)).tolist() == target.tolist()


@law
@given(problems().flatmap(lambda p: st.tuples(st.just(p), st.permutations(range(p.members)))))
def test_balance_does_not_depend_on_the_numbering(case: tuple[Problem, list[int]]) -> None:
    problem, order = case
    renumbered = _renumber(problem, order)
    before = compute_loads(problem, assign_uniform(problem))
    after = compute_loads(renumbered, assign_uniform(renumbered))
    assert before.max(initial=0) == after.max(initial=0)
    assert before.min(initial=0) == after.min(initial=0)


def _renumber(problem: Problem, order: list[int]) -> Problem:
    """`order`: the new number of each member."""
    subscribers = subscriber_table(problem)
    chosen: list[list[int]] = [[] for _ in order]
    for topic, members in enumerate(subscribers):
        for member in members:
            chosen[order[member]].append(topic)
    owner = np.array([*order, NOBODY], dtype=np.int32)[problem.owner]
    subscriptions = Subscriptions.of(chosen, problem.topics)
    return Problem(problem.topic_start, problem.members, owner, subscriptions)


@law
@given(problems(min_members=0) | problems(min_members=0, owned=False, partitions_max=40))
def test_range_cuts_every_topic_into_ranges(problem: Problem) -> None:
    expected: list[int] = []
    counts = problem.partition_counts().tolist()
    for count, members in zip(counts, subscriber_table(problem), strict=True):
        for rank, member in enumerate(sorted(members)):
            length = count // len(members) + (rank < count % len(members))
            expected += [member] * length
        if not members:
            expected += [NOBODY] * count
    assert assign_range(problem).tolist() == expected


@settings(law, max_examples=30)
@given(
    st.integers(1, 400),
    st.lists(st.integers(0, 400), min_size=1, max_size=20),
    st.integers(0, 2**32 - 1),
)
def test_larger_homogeneous_groups(members: int, counts: list[int], seed: int) -> None:
    """Balance and fewest moves, which are known without a search where all subscribe to all."""
    partitions = sum(counts)
    shape = np.random.default_rng(seed)
    owner = (shape.pareto(0.5, partitions) % (members + 1)).astype(np.int32) - 1
    subscriptions = Subscriptions.all(members, len(counts))
    problem = Problem(np.cumsum([0, *counts]), members, owner, subscriptions)
    target = assign_uniform(problem)
    check_valid(problem, target)
    assert compute_spread(problem, target) <= 1

    held = compute_loads(problem, owner)
    base, odd = divmod(partitions, members)
    fewest = int(np.maximum(held - base, 0).sum()) - min(odd, int((held > base).sum()))
    assert count_moves(problem, target) == fewest
