"""Limits the moves from one target assignment to the next by a move budget.

The remaining moves follow in later steps, each of which starts from the owners that the last one
left. That terminates only if every step approaches a fixed point. Every move does if the target
does not depend on the owners, or balances counts. If an assignor balances weight, half of an
exchange may make both members worse off, and the next target would undo it. For such targets a step
makes only moves and exchanges that lower the sum of squares of the members' excess over their fair
loads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.assignors.legality import find_legal
from muster.assignors.problem import (
    NOBODY,
    Flags,
    Floats,
    Ints,
    Members,
    Problem,
    compute_fixed,
)
from muster.assignors.shares.member_shares import NO_BUNDLE, make_graph
from muster.assignors.units import Units
from muster.assignors.weighted.weighted_assignor import compute_fair

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Gain:
    """The fair load of each member; each step lowers the sum of squares of the differences.

    `weight` is per partition, `fair` per member. `is_free`: partitions that may move whatever their
    weight, because of a pin or of the rest of their unit.
    """

    weight: Floats
    fair: Floats
    is_free: Flags


@dataclass(frozen=True, slots=True)
class _Move:
    """Partitions that move together from `giver` to `receiver`."""

    number: int
    giver: int
    receiver: int
    weight: float
    cost: int


def compute_gain(problem: Problem, pinned: Members | None, units: Units | None) -> Gain:
    """The gain by the problem's weights, or by counts if it has none."""
    weights = problem.weights
    weight = np.ones(problem.partitions) if weights is None else weights.of_partition
    is_free = weight == 0
    if units is not None:
        is_free = is_free | units.find_split(problem)
    if pinned is None:
        return Gain(weight, _compute_fair(problem, weight), is_free)
    is_pinned = pinned != NOBODY
    fixed = compute_fixed(problem, pinned).weight
    rest = problem.restrict(~is_pinned)
    return Gain(weight, _compute_fair(rest, weight[~is_pinned], fixed), is_free | is_pinned)


def _compute_fair(problem: Problem, weight: Floats, fixed: Floats | None = None) -> Floats:
    fixed = np.zeros(problem.members) if fixed is None else fixed
    graph = make_graph(problem)
    if graph is None:
        return fixed
    bundle = graph.bundle_of_topic[problem.topic_of_partition()]
    return compute_fair(graph, np.where(weight > 0, bundle, NO_BUNDLE), weight, fixed)


def limit_moves(
    problem: Problem, target: Members, budget: int, units: Units | None, gain: Gain | None
) -> tuple[Members, int]:
    """(the part of the target within the budget, the number of moves left for later steps).

    The budget limits partitions revoked from members that could keep them; unowned partitions
    always follow the target. Moves that give a receiver its first partition come first, then those
    with its second, and so on, so that each step helps all members. Partitions of one unit move
    together; a unit larger than `budget` does not move. If a step moves nothing, the caller must
    not start another: it would have the same input and the same result.
    """
    moves = find_legal(problem, problem.owner) & (target != problem.owner)
    left = int(moves.sum())
    if left <= budget:
        return target, 0
    move = np.flatnonzero(moves)
    unit = move if units is None else units.unit_of_partition[move]
    _, first, number, cost = np.unique(
        unit, return_index=True, return_inverse=True, return_counts=True
    )
    order = _order_moves(problem.owner[move[first]], target[move[first]], problem.members)
    if gain is None:
        order = order[cost[order] <= budget]
        chosen = order[np.cumsum(cost[order]) <= budget]
    else:
        weight = np.bincount(number, gain.weight[move])
        is_free = np.bincount(number, gain.is_free[move]) > 0
        giver, receiver = problem.owner[move[first]], target[move[first]]
        candidates = [
            _Move(n, int(giver[n]), int(receiver[n]), float(weight[n]), int(cost[n]))
            for n in order.tolist()
            if cost[n] <= budget
        ]
        kept = np.where(moves, problem.owner, target)
        chosen = _choose(candidates, is_free, _compute_excess(kept, gain), budget)
    is_chosen = np.zeros(len(first), dtype=np.bool_)
    is_chosen[chosen] = True
    stays = move[~is_chosen[number]]
    limited = target.copy()
    limited[stays] = problem.owner[stays]
    return limited, len(stays)


def _compute_excess(owner: Members, gain: Gain) -> list[float]:
    """Per member, its load above the fair load."""
    has = owner != NOBODY
    load = np.bincount(owner[has], gain.weight[has], minlength=len(gain.fair))
    excess: list[float] = (load - gain.fair).tolist()
    return excess


def _choose(candidates: Sequence[_Move], is_free: Flags, excess: list[float], budget: int) -> Ints:
    """The numbers of the moves to make, in order of the candidates; exchanges come last."""
    chosen: list[int] = []
    waiting = list(candidates)
    while True:
        passed_over = []
        for move in waiting:
            if move.cost <= budget and (is_free[move.number] or _lowers(move, excess)):
                budget -= move.cost
                _carry_out(move, excess)
                chosen.append(move.number)
            else:
                passed_over.append(move)
        if len(passed_over) == len(waiting) or not budget:
            break
        waiting = passed_over
    if budget > 1:
        chosen += _choose_exchanges(waiting, excess, budget)
    return np.array(chosen, dtype=np.int64)


def _lowers(move: _Move, excess: Sequence[float]) -> bool:
    """Whether the move lowers the sum of squares: its weight is below the members' difference."""
    difference = excess[move.giver] - excess[move.receiver]
    return move.weight < difference * (1 - _ROUNDING)


def _carry_out(move: _Move, excess: list[float]) -> None:
    excess[move.giver] -= move.weight
    excess[move.receiver] += move.weight


def _choose_exchanges(moves: Sequence[_Move], excess: list[float], budget: int) -> list[int]:
    """Pairs of opposite moves between two members that only together lower the sum of squares."""
    back: dict[tuple[int, int], list[tuple[float, int]]] = {}
    by_number = {move.number: move for move in moves}
    for move in moves:
        back.setdefault((move.giver, move.receiver), []).append((move.weight, move.number))
    for entries in back.values():
        entries.sort()
    chosen: list[int] = []
    done: set[int] = set()
    for move in moves:
        entries = back.get((move.receiver, move.giver), [])
        least = move.weight - (excess[move.giver] - excess[move.receiver]) * (1 - _ROUNDING)
        at = bisect_left(entries, (least, -1))
        # The lightest move back that leaves a net weight below the members' difference.
        while at < len(entries) and (entries[at][1] in done or entries[at][0] <= least):
            at += 1
        if move.number in done or at == len(entries) or entries[at][0] >= move.weight:
            continue
        other = by_number[entries[at][1]]
        if move.cost + other.cost > budget:
            continue
        budget -= move.cost + other.cost
        for one in (move, other):
            _carry_out(one, excess)
            done.add(one.number)
            chosen.append(one.number)
        entries.remove((other.weight, other.number))
    return chosen


def _order_moves(giver: Members, receiver: Members, members: int) -> Ints:
    """The moves, ordered by rank within their receiver and their giver."""
    rank = np.maximum(_rank(receiver, members), _rank(giver, members))
    return np.lexsort((np.arange(len(rank)), rank))


def _rank(member: Members, members: int) -> Ints:
    """For each entry, the number of earlier entries with the same member."""
    order = np.argsort(member, kind="stable")
    start = np.searchsorted(member[order], np.arange(members))
    rank = np.empty(len(member), dtype=np.int64)
    rank[order] = np.arange(len(member)) - start[member[order]]
    return rank
