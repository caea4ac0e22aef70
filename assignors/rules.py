"""What holds for any assignor: pins, topics that go together, and how much may move at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assignors.answer import check_answer
from assignors.assignor import Assign, Assignor
from assignors.legality import find_legal
from assignors.problem import NOBODY, Fixed, Ints, Members, Problem
from assignors.units import Units, make_units

UNLIMITED = 2_147_483_647


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """`pinned`: for each partition the member that it is fixed to, or NOBODY.

    A pin to a member that does not subscribe to the topic does not count. `co_partition`: of topics
    with equal partition counts and equal subscribers, all partitions of one number are at one
    member. `move_budget`: how many partitions may be taken from members that could keep them.
    """

    pinned: Members | None = None
    co_partition: bool = False
    move_budget: int = UNLIMITED


NO_RULES = Rules()


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """`target`: the member of each partition, or NOBODY. `moves_left`: what the budget held up."""

    target: Members
    moves_left: int = 0


def compute_assignment(assignor: Assignor, problem: Problem, rules: Rules = NO_RULES) -> Assignment:
    """The assignor's answer under the rules. Raises BadAnswer where that is no answer.

    Where pins and co-partitioning contradict each other, pins hold.
    """
    pinned = _find_pins(problem, rules.pinned)
    units = make_units(problem) if rules.co_partition else None
    if units is not None:
        inner = units.problem
        assign = assignor.assign
        if units.are_uneven and assignor.assign_sets is not None:
            assign = assignor.assign_sets
        target = units.spread(_assign_pinned(assign, inner, units.gather_pins(pinned)))
    else:
        target = _assign_pinned(assignor.assign, problem, pinned)
    if pinned is not None:
        target = np.where(pinned != NOBODY, pinned, target)
    if rules.move_budget >= problem.partitions:
        return Assignment(target)
    return limit_moves(problem, target, rules.move_budget, units)


def _find_pins(problem: Problem, pinned: Members | None) -> Members | None:
    """The pins that count; `None` where there are none."""
    if pinned is None or (pinned == NOBODY).all():
        return None
    legal = np.where(find_legal(problem, pinned), pinned, NOBODY).astype(np.int32)
    return legal if (legal != NOBODY).any() else None


def _assign_pinned(assign: Assign, problem: Problem, pinned: Members | None) -> Members:
    if pinned is None:
        return check_answer(problem, assign(problem))
    is_pinned = pinned != NOBODY
    rest = problem.restrict(~is_pinned, _compute_fixed(problem, pinned))
    target = pinned.copy()
    target[~is_pinned] = check_answer(rest, assign(rest))
    return target


def _compute_fixed(problem: Problem, pinned: Members) -> Fixed:
    is_pinned = pinned != NOBODY
    owner = pinned[is_pinned]
    partitions = np.bincount(owner, minlength=problem.members)
    weight = partitions.astype(np.float64)
    if problem.weights is not None:
        weight = np.zeros(problem.members)
        np.add.at(weight, owner, problem.weights.of_partition[is_pinned])
    return Fixed(partitions, weight)


def limit_moves(
    problem: Problem, target: Members, budget: int, units: Units | None = None
) -> Assignment:
    """As much of the target as takes no more than `budget` partitions from who could keep them.

    What nobody has goes where the target says. Of the moves those are chosen first that give each
    receiver its first partition, then its second, and so on: so each step is of use to all.
    Partitions that go together move together; a set of more than `budget` stays where it is.
    """
    moves = find_legal(problem, problem.owner) & (target != problem.owner)
    left = int(moves.sum())
    if left <= budget:
        return Assignment(target)
    move = np.flatnonzero(moves)
    unit = move if units is None else units.unit_of_partition[move]
    _, first, number, cost = np.unique(
        unit, return_index=True, return_inverse=True, return_counts=True
    )
    order = _order_moves(problem.owner[move[first]], target[move[first]], problem.members)
    order = order[cost[order] <= budget]
    order = order[np.cumsum(cost[order]) <= budget]
    is_chosen = np.zeros(len(first), dtype=np.bool_)
    is_chosen[order] = True
    stays = move[~is_chosen[number]]
    limited = target.copy()
    limited[stays] = problem.owner[stays]
    return Assignment(limited, len(stays))


def _order_moves(giver: Members, receiver: Members, members: int) -> Ints:
    """The moves, those first that are the first of their receiver and of their giver."""
    rank = np.maximum(_rank(receiver, members), _rank(giver, members))
    return np.lexsort((np.arange(len(rank)), rank))


def _rank(member: Members, members: int) -> Ints:
    """Of each entry, how many before it have the same member."""
    order = np.argsort(member, kind="stable")
    start = np.searchsorted(member[order], np.arange(members))
    rank = np.empty(len(member), dtype=np.int64)
    rank[order] = np.arange(len(member)) - start[member[order]]
    return rank
