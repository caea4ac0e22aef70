"""Laws of all assignors and of the rules that hold for any of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.assignors.assignor import Assignor
from muster.assignors.legality import find_legal
from muster.assignors.problem import NOBODY, Members, Problem, Subscriptions, Weights
from muster.assignors.registry import ASSIGNORS
from muster.assignors.rules import UNLIMITED, Rules, compute_assignment
from tests.properties.assignors.groups import NamedGroup, named_groups
from tests.support.assignors.cases import (
    check_valid,
    compute_loads,
    compute_spread,
    count_moves,
    is_complete,
    is_locally_balanced,
    subscriber_table,
)
from tests.support.assignors.figures import compute_weight_loads, count_local

law = settings(max_examples=120)

any_assignor = st.sampled_from(list(ASSIGNORS.values()))
small_groups = named_groups(most_members=3, most_partitions=2)


@st.composite
def rules_of(draw: st.DrawFn, problem: Problem, *, budget: bool = True) -> Rules:
    members = st.sampled_from([NOBODY, NOBODY, *range(problem.members)])
    pins = st.lists(members, min_size=problem.partitions, max_size=problem.partitions)
    return Rules(
        draw(st.none() | pins.map(lambda chosen: np.array(chosen, dtype=np.int32))),
        draw(st.booleans()),
        draw(st.sampled_from([1, 2, 3, UNLIMITED])) if budget else UNLIMITED,
    )


def with_owner(problem: Problem, owner: Members) -> Problem:
    return replace(problem, owner=owner)


def assign(assignor: Assignor, problem: Problem, rules: Rules) -> Members:
    return compute_assignment(assignor, problem, rules).target


@law
@given(any_assignor, named_groups(), st.data())
def test_complete_legal_and_deterministic(
    assignor: Assignor, group: NamedGroup, data: st.DataObject
) -> None:
    problem = group.make_problem()
    problem.owner.setflags(write=False)
    rules = data.draw(rules_of(problem))
    target = assign(assignor, problem, rules)
    check_valid(problem, target)
    assert assign(assignor, problem, rules).tolist() == target.tolist()


@law
@given(any_assignor, named_groups(), st.booleans(), st.data())
def test_the_order_of_the_input_does_not_matter(
    assignor: Assignor, group: NamedGroup, co_partition: bool, data: st.DataObject
) -> None:
    other = group.shuffled(data.draw)
    rules = Rules(co_partition=co_partition, move_budget=data.draw(st.sampled_from([2, UNLIMITED])))
    named = group.name(assign(assignor, group.make_problem(), rules))
    assert other.name(assign(assignor, other.make_problem(), rules)) == named


@law
@given(any_assignor, named_groups(), st.data())
def test_an_answer_is_a_fixed_point(
    assignor: Assignor, group: NamedGroup, data: st.DataObject
) -> None:
    problem = group.make_problem()
    rules = data.draw(rules_of(problem, budget=False))
    target = assign(assignor, problem, rules)
    assert assign(assignor, with_owner(problem, target), rules).tolist() == target.tolist()


@law
@given(named_groups())
def test_rack_is_balanced_and_as_local_as_uniform_or_more(group: NamedGroup) -> None:
    problem = group.make_problem()
    target = assign(ASSIGNORS["rack"], problem, Rules())
    uniform = assign(ASSIGNORS["uniform"], problem, Rules())
    loads, other = compute_loads(problem, target), compute_loads(problem, uniform)
    assert sorted(loads.tolist()) == sorted(other.tolist())
    assert count_local(problem, target) >= count_local(problem, uniform)
    if is_locally_balanced(problem, uniform):
        assert is_locally_balanced(problem, target)


def all_targets(problem: Problem) -> list[Members]:
    """Every complete and legal assignment."""
    subscribers = subscriber_table(problem)
    choices = [sorted(subscribers[t]) or [NOBODY] for t in problem.topic_of_partition().tolist()]
    return [np.array(chosen, dtype=np.int32) for chosen in product(*choices)]


@law
@given(small_groups)
def test_rack_is_as_local_as_balance_allows(group: NamedGroup) -> None:
    """Of all assignments with as even loads; with mixed subscriptions, with its loads."""
    problem = group.make_problem()
    target = assign(ASSIGNORS["rack"], problem, Rules())
    loads = compute_loads(problem, target).tolist()
    if problem.subscriptions.is_homogeneous:
        rivals = [t for t in all_targets(problem) if compute_spread_of(problem, t) <= 1]
    else:
        rivals = [t for t in all_targets(problem) if compute_loads(problem, t).tolist() == loads]
    best = max(count_local(problem, rival) for rival in rivals)
    assert count_local(problem, target) == best


def compute_spread_of(problem: Problem, target: Members) -> int:
    return compute_spread(problem, target) if problem.members else 0


@law
@given(small_groups)
def test_rack_moves_no_more_than_that_takes(group: NamedGroup) -> None:
    """Where everybody subscribes to everything: the least moves from one rack to another."""
    problem = group.make_problem()
    if not problem.subscriptions.is_homogeneous or not problem.members:
        return
    target = assign(ASSIGNORS["rack"], problem, Rules())
    best = count_local(problem, target)
    rivals = [
        rival
        for rival in all_targets(problem)
        if compute_spread(problem, rival) <= 1 and count_local(problem, rival) == best
    ]
    assert _rack_moves(problem, target) == min(_rack_moves(problem, rival) for rival in rivals)


def _rack_moves(problem: Problem, target: Members) -> int:
    assert problem.racks is not None
    rack = np.append(problem.racks.of_member, NOBODY)
    moved = (problem.owner != NOBODY) & (rack[problem.owner] != rack[target])
    return int(moved.sum())


@law
@given(small_groups)
def test_weighted_is_not_far_from_the_best_there_is(group: NamedGroup) -> None:
    """Graham's bound for what is dealt heaviest first: four thirds of the least highest load."""
    problem = group.make_problem()
    free = with_owner(problem, np.full_like(problem.owner, NOBODY))
    target = assign(ASSIGNORS["weighted"], free, Rules())
    best = min(max(compute_weight_loads(free, rival), default=0) for rival in all_targets(free))
    most = 4 / 3 if free.subscriptions.is_homogeneous else 2
    assert max(compute_weight_loads(free, target), default=0) <= best * most + 1e-9


@law
@given(named_groups())
def test_weighted_leaves_no_partition_that_should_have_left(group: NamedGroup) -> None:
    """Nobody above its fair share by more than the limit could give one and be better off."""
    problem = group.make_problem()
    if not problem.subscriptions.is_homogeneous or not problem.members:
        return
    assert problem.weights is not None
    weight = problem.weights.of_partition
    target = assign(ASSIGNORS["weighted"], problem, Rules())
    loads = compute_weight_loads(problem, target)
    fair = float(weight.sum()) / problem.members
    for member, load in enumerate(loads):
        if load > fair * (1 + problem.weights.skew_limit) + 1e-6:
            owned = weight[(target == member) & (weight > 0)]
            assert (owned >= load - min(loads) - 1e-6).all()


@law
@given(any_assignor, named_groups(), st.data())
def test_pins_hold(assignor: Assignor, group: NamedGroup, data: st.DataObject) -> None:
    problem = group.make_problem()
    rules = data.draw(rules_of(problem, budget=False))
    if rules.pinned is None:
        return
    target = assign(assignor, problem, rules)
    legal = find_legal(problem, rules.pinned)
    assert target[legal].tolist() == rules.pinned[legal].tolist()


@law
@given(named_groups(), st.data())
def test_uniform_is_balanced_beside_pins(group: NamedGroup, data: st.DataObject) -> None:
    problem = group.make_problem()
    pinned = data.draw(rules_of(problem, budget=False)).pinned
    if pinned is None:
        return
    target = assign(ASSIGNORS["uniform"], problem, Rules(pinned))
    movable = ~find_legal(problem, pinned)
    loads = compute_loads(problem, target)
    subscribers = subscriber_table(problem)
    topic_of = problem.topic_of_partition()
    for partition in np.flatnonzero(movable & (target != NOBODY)).tolist():
        for other in subscribers[topic_of[partition]]:
            assert loads[target[partition]] - loads[other] <= 1


@law
@given(any_assignor, named_groups())
def test_topics_that_go_together_do(assignor: Assignor, group: NamedGroup) -> None:
    problem = group.make_problem()
    target = assign(assignor, problem, Rules(co_partition=True))
    subscribers, counts = subscriber_table(problem), problem.partition_counts().tolist()
    start = problem.topic_start
    for one, other in product(range(problem.topics), repeat=2):
        if counts[one] == counts[other] and subscribers[one] == subscribers[other]:
            first = target[start[one] : start[one + 1]]
            assert first.tolist() == target[start[other] : start[other + 1]].tolist()


@law
@given(any_assignor, named_groups(), st.integers(1, 4), st.data())
def test_a_budget_is_kept_and_gets_there(
    assignor: Assignor, group: NamedGroup, budget: int, data: st.DataObject
) -> None:
    problem = group.make_problem()
    rules = replace(data.draw(rules_of(problem)), move_budget=budget, co_partition=False)
    problem = follow_steps(assignor, problem, rules)
    if not assignor.levels_weight:
        full = replace(rules, move_budget=UNLIMITED)
        assert assign(assignor, problem, full).tolist() == problem.owner.tolist()


def follow_steps(assignor: Assignor, problem: Problem, rules: Rules) -> Problem:
    """The problem with the owners after all steps; asking again changes nothing."""
    for _ in range(6 * problem.partitions + 2):
        step = compute_assignment(assignor, problem, rules)
        assert count_legal_moves(problem, step.target) <= rules.move_budget
        is_last = step.target.tolist() == problem.owner.tolist()
        problem = with_owner(problem, step.target)
        if is_last:
            return problem
    raise AssertionError("it moves for ever")


@st.composite
def weighed_groups(draw: st.DrawFn) -> Problem:
    """Enough partitions of unlike weights that an exchange is often what levels two members."""
    members = draw(st.integers(2, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = [draw(st.integers(1, 12)) for _ in range(draw(st.integers(1, 3)))]
    partitions = sum(counts)
    subscribed = [
        [topic for topic in range(len(counts)) if random.random() < 0.8] for _ in range(members)
    ]
    homogeneous = draw(st.booleans())
    return Problem(
        np.cumsum([0, *counts]),
        members,
        random.integers(NOBODY, members, partitions).astype(np.int32),
        Subscriptions.all(members, len(counts))
        if homogeneous
        else Subscriptions.of(subscribed, len(counts)),
        None,
        Weights(
            random.lognormal(0, draw(st.sampled_from([0.5, 1.0, 2.0])), partitions)
            * (random.random(partitions) < draw(st.sampled_from([0.7, 1.0]))),
            draw(st.sampled_from([0.0, 0.05, 0.5])),
        ),
    )


@settings(max_examples=400)
@given(any_assignor, weighed_groups(), st.integers(1, 5), st.booleans(), st.data())
def test_steps_end_whatever_partitions_weigh(
    assignor: Assignor, problem: Problem, budget: int, co_partition: bool, data: st.DataObject
) -> None:
    pinned = data.draw(rules_of(problem)).pinned
    follow_steps(assignor, problem, Rules(pinned, co_partition, budget))


def count_legal_moves(problem: Problem, target: Members) -> int:
    return int((find_legal(problem, problem.owner) & (target != problem.owner)).sum())


@law
@given(named_groups(), st.integers(1, 4))
def test_a_budget_of_uniform_takes_as_few_epochs_as_it_can(group: NamedGroup, budget: int) -> None:
    problem = group.make_problem()
    if not problem.subscriptions.is_homogeneous:
        return
    uniform = ASSIGNORS["uniform"]
    moves = count_moves(problem, assign(uniform, problem, Rules()))
    for _ in range(max(1, -(-moves // budget))):
        step = compute_assignment(uniform, problem, Rules(move_budget=budget))
        problem = with_owner(problem, step.target)
    assert step.moves_left == 0
    assert is_complete(problem, problem.owner)
