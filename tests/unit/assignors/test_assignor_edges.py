"""Edge cases, and known bugs of other assignors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from muster.assignors.problem import (
    NOBODY,
    HeterogeneousSubscriptions,
    Members,
    Problem,
    Subscriptions,
)
from muster.assignors.registry import ASSIGNORS
from muster.assignors.shares import exchange, member_shares
from muster.assignors.shares.count_placement import find_excess
from muster.assignors.shares.member_shares import make_share_graph
from muster.assignors.uniform.uniform_assignor import assign_uniform
from tests.support.assignors.cases import (
    check_valid,
    compute_loads,
    compute_spread,
    count_moves,
    make_problem,
)

each_assignor = pytest.mark.parametrize(
    "assign", [assignor.assign for assignor in ASSIGNORS.values()], ids=list(ASSIGNORS)
)
Assign = Callable[[Problem], Members]


def test_the_registry_has_each_by_its_name() -> None:
    assert all(name == assignor.name for name, assignor in ASSIGNORS.items())


@each_assignor
@pytest.mark.parametrize(
    ("counts", "subscriptions"),
    [
        ([], []),
        ([3], []),
        ([], [[], []]),
        ([0], [[0], [0]]),
        ([0, 0], [[0], [1]]),
        ([2, 3], [[], []]),
        ([2, 0, 3], [[1], [1]]),
    ],
    ids=[
        "nothing",
        "no members",
        "no topics",
        "no partitions",
        "no partitions, mixed",
        "no subscriptions",
        "only an empty topic subscribed",
    ],
)
def test_where_nothing_can_be_assigned_nobody_gets_anything(
    assign: Assign, counts: list[int], subscriptions: list[list[int]]
) -> None:
    problem = make_problem(counts, subscriptions)
    assert assign(problem).tolist() == [NOBODY] * sum(counts)


@each_assignor
def test_a_member_without_subscriptions_gets_nothing(assign: Assign) -> None:
    """KAFKA-16930: the assignor threw when one member subscribed to nothing."""
    problem = make_problem([4], [[0], [], [0]])
    target = assign(problem)
    check_valid(problem, target)
    assert compute_loads(problem, target).tolist() == [2, 0, 2]


@each_assignor
def test_a_topic_that_nobody_subscribes_to_goes_to_nobody(assign: Assign) -> None:
    problem = make_problem([2, 2, 2], [[0], [2]], [1, 1, 0, 1, 0, 0])
    assert assign(problem).tolist() == [0, 0, NOBODY, NOBODY, 1, 1]


@pytest.mark.parametrize("who_has_more", [[0], [2], [1, 3], [0, 1, 2]])
def test_a_balanced_group_keeps_its_odd_partitions(who_has_more: list[int]) -> None:
    """KAFKA-18688: the odd partitions depended on an iteration order."""
    owner = [0, 0, 1, 1, 2, 2, 3, 3, *who_has_more]
    problem = make_problem([len(owner)], [[0]] * 4, owner)
    assert assign_uniform(problem).tolist() == owner


CHAIN = [[0], [0, 1], [1]]
"""The subscribers of the two topics of a chain, and the owners of its 14 and 16 partitions."""
CHAIN_OWNERS = [0] * 9 + [1] * 5 + [1] * 5 + [2] * 11


def test_an_assignment_that_no_single_move_improves_is_evened_out_along_a_chain() -> None:
    problem = make_problem([14, 16], CHAIN, CHAIN_OWNERS)
    target = assign_uniform(problem)
    assert compute_loads(problem, target).tolist() == [10, 10, 10]
    assert count_moves(problem, target) == 2


def test_who_has_nothing_gets_something_along_a_chain() -> None:
    """The only partition that the new member could get is the only one of its owner."""
    problem = make_problem([1, 2], [[0], [0, 1], [1]], [1, 2, 2])
    target = assign_uniform(problem)
    assert compute_loads(problem, target).tolist() == [1, 1, 1]
    assert count_moves(problem, target) == 2


def test_who_has_nothing_and_can_get_nothing_makes_nobody_move() -> None:
    owner = [1, 2, 2, 3, 3, 3]
    problem = make_problem([1, 2, 3], [[0], [0], [1], [2]], owner)
    assert assign_uniform(problem).tolist() == owner


def test_unowned_partitions_go_along_chains() -> None:
    problem = make_problem([18, 12], [[0], [0, 1], [1]])
    assert compute_loads(problem, assign_uniform(problem)).tolist() == [10, 10, 10]


def test_owners_give_up_along_a_chain_what_narrows_the_spread() -> None:
    owner = [*CHAIN_OWNERS, *[3] * 9, NOBODY]
    problem = make_problem([14, 16, 10], [*CHAIN, [2]], owner)
    target = assign_uniform(problem)
    assert compute_loads(problem, target).tolist() == [10, 10, 10, 10]
    assert count_moves(problem, target) == 2


def test_owners_give_up_nothing_along_a_chain_that_narrows_nothing() -> None:
    """One of the two members with the highest load could give one, but not the other."""
    owner = [*CHAIN_OWNERS, *[3] * 11, *[4] * 7, NOBODY]
    problem = make_problem([14, 16, 11, 8], [*CHAIN, [2], [3]], owner)
    assert assign_uniform(problem).tolist() == [*owner[:-1], 4]


def test_an_owner_that_does_not_subscribe_is_nobody() -> None:
    owner = [1, 1, 1, 0, 0, 0]
    problem = make_problem([3, 3], [[0], [1]], owner)
    assert assign_uniform(problem).tolist() == [0, 0, 0, 1, 1, 1]


def test_a_newcomer_gets_some_of_every_topic() -> None:
    """Not all of the last topic, which may be the only busy one, or the only idle one."""
    topics, partitions = 4, 24
    owner = [0] * (topics * partitions)
    problem = make_problem([partitions] * topics, [list(range(topics))] * 2, owner)
    target = assign_uniform(problem).reshape(topics, partitions)
    assert (target == 1).sum(axis=1).tolist() == [partitions // 2] * topics


def test_givers_do_not_all_give_the_same_topic() -> None:
    topics, members = 5, 5
    owner = list(range(members)) * topics
    problem = make_problem([members] * topics, [list(range(topics))] * (members + 1), owner)
    target = assign_uniform(problem)
    given = np.flatnonzero(target == members) // members
    assert len(set(given.tolist())) == len(given) == 4


def test_excess_is_released_from_givers_alone() -> None:
    owner_number = np.array([1, 2, 1, 0, 1, 2, 1])
    released = find_excess(owner_number, np.array([4, 2]), np.array([2, 2]))
    assert len(released) == 2
    assert set(released.tolist()) <= {0, 2, 4, 6}


@pytest.mark.parametrize("rounds", [0, 1000])
def test_few_moves_where_subscriptions_overlap(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """Leveling topic by topic would take partitions that other members give more cheaply."""
    monkeypatch.setattr(exchange.Budget, "for_graph", lambda _graph: exchange.Budget(rounds))
    members, topics, each, joining = 100, 20, 50, 20
    subscribes = np.random.default_rng(7).random((members, topics)) < 0.3
    subscriptions = [np.flatnonzero(row).tolist() for row in subscribes]
    first = assign_uniform(make_problem([each] * topics, subscriptions))
    joined = make_problem(
        [each] * topics, [*subscriptions, *subscriptions[:joining]], first.tolist()
    )
    second = assign_uniform(joined)
    check_valid(joined, second)
    assert compute_spread(joined, second) == 1
    assert count_moves(joined, second) == topics * each // (members + joining) * joining


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_spent_budget_leaves_a_valid_answer(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    members = 40
    ring = [[m, (m + 1) % members] for m in range(members)]
    counts = [1 + 7 * (m % 3 == 0) + m % 5 for m in range(members)]
    problem = make_problem(counts, ring, [m for m in range(members) for _ in range(counts[m])])
    spent = exchange.Budget(rounds)
    monkeypatch.setattr(exchange.Budget, "for_graph", lambda _graph: spent)
    check_valid(problem, assign_uniform(problem))
    assert spent.rounds < 0


def test_owners_are_found_without_the_table_too(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = [0, 1, 2, 0, 1, 2, NOBODY, 2, 2]
    problem = make_problem([3, 3, 3], [[0, 1], [1, 2], [0, 2]], owner)
    with_table = assign_uniform(problem).tolist()
    monkeypatch.setattr(member_shares, "_LARGEST_TABLE", 0)
    assert assign_uniform(problem).tolist() == with_table


@each_assignor
def test_equal_subscriptions_may_be_listed_or_not(assign: Assign) -> None:
    """One more topic without subscribers makes the same group a heterogeneous one."""
    counts, members = [7, 5], 4
    plain = Problem(
        np.cumsum([0, *counts]),
        members,
        np.full(sum(counts), NOBODY, dtype=np.int32),
        Subscriptions.all(members, len(counts)),
    )
    listed = make_problem([*counts, 2], [[0, 1]] * members)
    assert assign(listed).tolist() == [*assign(plain).tolist(), NOBODY, NOBODY]


def test_bundles_that_leave_the_least_choice_come_first() -> None:
    problem = make_problem([2, 6, 4, 1, 3], [[0, 3], [0, 1, 3], [0, 1, 2, 3], [4]])
    assert isinstance(problem.subscriptions, HeterogeneousSubscriptions)
    graph = make_share_graph(problem, problem.subscriptions)
    assert graph.bundle_of_topic.tolist() == [3, 2, 0, 3, 1]
    assert graph.size.tolist() == [4, 3, 6, 3]
    assert graph.member.tolist() == [2, 3, 1, 2, 0, 1, 2]
