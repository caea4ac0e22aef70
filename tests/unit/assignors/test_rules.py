"""Examples of pins, co-partitioning and the move budget, and invalid results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from muster.assignors.assignor import Assignor
from muster.assignors.problem import NOBODY, Fixed, Problem
from muster.assignors.registry import ASSIGNORS
from muster.assignors.rules import Rules, compute_assignment
from tests.support.assignors.cases import compute_loads, make_problem

UNIFORM, RANGE = ASSIGNORS["uniform"], ASSIGNORS["range"]


def pins(*members: int) -> Rules:
    return Rules(np.array(members, dtype=np.int32))


def test_others_get_the_more_the_less_is_pinned_to_them() -> None:
    problem = make_problem([6], [[0]] * 3)
    target = compute_assignment(UNIFORM, problem, pins(2, 2, 2, -1, -1, -1)).target
    assert target.tolist()[:3] == [2, 2, 2]
    assert compute_loads(problem, target).tolist() == [2, 1, 3]


def test_a_pin_takes_the_partition_from_its_owner() -> None:
    problem = make_problem([4], [[0]] * 2, [0, 0, 1, 1])
    target = compute_assignment(UNIFORM, problem, pins(1, -1, -1, -1)).target
    assert target.tolist() in ([1, 0, 0, 1], [1, 0, 1, 0])


def test_a_pin_to_a_member_that_does_not_subscribe_does_not_count() -> None:
    problem = make_problem([2, 2], [[0], [1]])
    target = compute_assignment(UNIFORM, problem, pins(1, -1, 0, -1)).target
    assert target.tolist() == [0, 0, 1, 1]


def test_range_cuts_what_is_not_pinned() -> None:
    problem = make_problem([6], [[0]] * 2)
    target = compute_assignment(RANGE, problem, pins(-1, 1, -1, -1, -1, -1)).target
    assert target.tolist() == [0, 1, 0, 0, 1, 1]


def test_topics_of_equal_counts_go_together() -> None:
    problem = make_problem([5, 5, 3], [[0, 1, 2]] * 2)
    target = compute_assignment(UNIFORM, problem, Rules(co_partition=True)).target
    assert target[:5].tolist() == target[5:10].tolist()
    assert sorted(compute_loads(problem, target).tolist()) == [6, 7]


def test_topics_of_other_subscribers_do_not() -> None:
    problem = make_problem([2, 2], [[0, 1], [0]])
    rules = Rules(co_partition=True)
    apart = compute_assignment(UNIFORM, problem).target
    assert compute_assignment(UNIFORM, problem, rules).target.tolist() == apart.tolist()


def test_a_pin_holds_against_co_partitioning() -> None:
    problem = make_problem([2, 2], [[0, 1]] * 2)
    rules = Rules(np.array([0, -1, 1, -1], dtype=np.int32), co_partition=True)
    target = compute_assignment(UNIFORM, problem, rules).target.tolist()
    assert (target[0], target[2]) == (0, 1)
    assert target[1] == target[3]


def test_a_budget_gives_every_receiver_something() -> None:
    problem = make_problem([12], [[0]] * 3, [0] * 12)
    step = compute_assignment(UNIFORM, problem, Rules(move_budget=2))
    assert compute_loads(problem, step.target).tolist() == [10, 1, 1]
    assert step.moves_left == 6


def test_what_nobody_has_costs_nothing_of_the_budget() -> None:
    problem = make_problem([12], [[0]] * 3, [0] * 6 + [NOBODY] * 6)
    step = compute_assignment(UNIFORM, problem, Rules(move_budget=1))
    assert NOBODY not in step.target.tolist()
    assert int((step.target[:6] != 0).sum()) == 1


def test_what_goes_together_moves_together_or_not_at_all() -> None:
    problem = make_problem([4, 4], [[0, 1]] * 2, [0] * 8)
    for budget, moved in ((1, 0), (2, 2), (3, 2), (4, 4)):
        rules = Rules(co_partition=True, move_budget=budget)
        step = compute_assignment(UNIFORM, problem, rules)
        assert int((step.target != 0).sum()) == moved
        assert step.moves_left == 4 - moved
        assert step.target[:4].tolist() == step.target[4:].tolist()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "the answer is a NoneType, not an array or a list"),
        ("0000", "the answer is a str"),
        (np.zeros(3, dtype=np.int32), r"shape \(3,\), not of 4 integers"),
        (np.zeros((2, 2), dtype=np.int32), r"shape \(2, 2\)"),
        (np.zeros(4), "an array of float64"),
        (np.array([0, 1, 2, 0]), "there is no member 2"),
        (np.array([0, -2, 1, 0]), "there is no member -2"),
        (np.array([0, 0, 0, 1]), "partition 2 is assigned to member 0, which does not subscribe"),
        ([[0, 1]], "the answer is for 1 members, not for 2"),
        ([[0, 1], [4]], "there is no partition 4"),
        ([[0, 1], [-1]], "there is no partition -1"),
        ([[0, 1], [1, 2]], "partition 1 is assigned to members 0 and 1"),
        ([[0, 0], [2]], "member 0 is assigned a partition twice"),
        ([[0.5], [2]], "the assignment of member 0 is not a list of partitions"),
        ([[0], [[2]]], "the assignment of member 1 is not a list of partitions"),
        ([[2], [0]], "partition 2 is assigned to member 0, which does not subscribe"),
    ],
)
def test_junk_is_no_answer(answer: object, said: str) -> None:
    problem = make_problem([2, 2], [[0], [0, 1]])
    with pytest.raises(ValueError, match=said):
        compute_assignment(Assignor("custom", lambda _problem: answer), problem)


@pytest.mark.parametrize(
    "answer",
    [
        np.array([0, 1, 1, -1]),
        np.array([0, 1, 1, -1], dtype=np.int8),
        [[0], [1, 2]],
        ((0,), [2, 1]),
    ],
)
def test_an_answer_may_be_an_array_or_lists(answer: object) -> None:
    problem = make_problem([2, 2], [[0], [0, 1]])
    target = compute_assignment(Assignor("custom", lambda _problem: answer), problem).target
    assert target.tolist() == [0, 1, 1, NOBODY]
    assert target.dtype == np.int32


def test_restricting_a_problem_keeps_what_is_of_its_partitions() -> None:
    problem = make_problem([3, 2], [[0], [0, 1]], [0, 1, 0, 1, NOBODY])
    kept = problem.restrict(np.array([True, False, True, False, True]))
    assert kept.topic_start.tolist() == [0, 2, 3]
    assert kept.owner.tolist() == [0, 0, NOBODY]


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        (Fixed(np.zeros(1, np.int64), np.zeros(2)), "fixed partitions has 1 entries, not 2"),
        (Fixed(np.zeros(2, np.int64), np.zeros(3)), "fixed weight has 3 entries, not 2"),
    ],
)
def test_what_is_fixed_is_of_each_member(fixed: Fixed, said: str) -> None:
    problem: Problem = make_problem([2], [[0], [0]])
    with pytest.raises(ValueError, match=said):
        replace(problem, fixed=fixed)
