"""Rules on top of any assignor: pins, co-partitioning, and the move budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.answer import check_answer
from muster.assignors.assignor import Assign, Assignor
from muster.assignors.legality import find_legal
from muster.assignors.move_budget import compute_gain, limit_moves
from muster.assignors.problem import NOBODY, Members, Problem, compute_fixed
from muster.assignors.units import make_units

UNLIMITED = 2_147_483_647


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """`pinned`: for each partition the member that it is pinned to, or NOBODY.

    A pin to a member that does not subscribe to the topic is ignored. `co_partition`: for topics
    with equal partition counts and the same subscribers, partitions with the same number go to one
    member. `move_budget`: how many partitions may be revoked from members that could keep them.
    """

    pinned: Members | None = None
    co_partition: bool = False
    move_budget: int = UNLIMITED


NO_RULES = Rules()


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """`target`: the member of each partition, or NOBODY. `moves_left`: moves beyond the budget."""

    target: Members
    moves_left: int = 0


def compute_assignment(assignor: Assignor, problem: Problem, rules: Rules = NO_RULES) -> Assignment:
    """The assignor's result under the rules. Raise BadAnswer if the result is invalid.

    If pins and co-partitioning conflict, pins win.
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
    inner = problem if units is None else units.problem
    levels_weight = assignor.levels_weight and inner.weights is not None
    if units is not None and units.are_uneven:
        levels_weight = assignor.assign_sets is not None
    gain = compute_gain(problem, pinned, units) if levels_weight else None
    chosen, moves_left = limit_moves(problem, target, rules.move_budget, units, gain)
    return Assignment(chosen, moves_left)


def _find_pins(problem: Problem, pinned: Members | None) -> Members | None:
    """The pins that apply; `None` if there are none."""
    if pinned is None or (pinned == NOBODY).all():
        return None
    legal = np.where(find_legal(problem, pinned), pinned, NOBODY).astype(np.int32)
    return legal if (legal != NOBODY).any() else None


def _assign_pinned(assign: Assign, problem: Problem, pinned: Members | None) -> Members:
    if pinned is None:
        return check_answer(problem, assign(problem))
    is_pinned = pinned != NOBODY
    rest = problem.restrict(~is_pinned, compute_fixed(problem, pinned))
    target = pinned.copy()
    target[~is_pinned] = check_answer(rest, assign(rest))
    return target
