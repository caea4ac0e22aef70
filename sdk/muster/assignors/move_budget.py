"""How much of a target one step takes where a move budget limits it.

The rest follows in later steps: the answer of a step is the owners of the next. The steps end only
if each one comes nearer to a fixed point. Every move does where the target does not depend on the
owners, or counts partitions. Where an assignor levels weight, half of an exchange may leave both
members worse off, and the next target takes it back. Of such a target a step takes only the moves,
and the exchanges, that lower the sum of the squares of what members have above their fair loads.
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
    """What each member should carry; every step lowers the sum of squares of the differences.

    `weight`: of each partition; `fair`: of each member; `is_free`: partitions that may move
    whatever they weigh, for their pins or the others of their unit ask for it.
    """

    weight: Floats
    fair: Floats
    is_free: Flags


@dataclass(frozen=True, slots=True)
class _Move:
    """Partitions that go together from `giver` to `receiver`."""

    number: int
    giver: int
    receiver: int
    weight: float
    cost: int


def compute_gain(problem: Problem, pinned: Members | None, units: Units | None) -> Gain:
    """The gain by the problem's weights; by counts where it has none."""
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
    """(as much of the target as the budget allows, how many moves are left for later steps).

    The budget is for partitions taken from members that could keep them; what nobody has goes
    where the target says. Of the moves those are chosen first that give each receiver its first
    partition, then its second, and so on: so each step is of use to all. Partitions that go
    together move together; a set of more than `budget` stays where it is. Where a step moves
    nothing none is to follow: it would be asked the same, and answer the same.
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
    """Per member: what it has above its fair load."""
    has = owner != NOBODY
    load = np.bincount(owner[has], gain.weight[has], minlength=len(gain.fair))
    excess: list[float] = (load - gain.fair).tolist()
    return excess


def _choose(candidates: Sequence[_Move], is_free: Flags, excess: list[float], budget: int) -> Ints:
    """The numbers of the moves to make, in order of the candidates; exchanges last."""
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
    """Whether the sum of squares falls: what moves is less than the difference of the two."""
    difference = excess[move.giver] - excess[move.receiver]
    return move.weight < difference * (1 - _ROUNDING)


def _carry_out(move: _Move, excess: list[float]) -> None:
    excess[move.giver] -= move.weight
    excess[move.receiver] += move.weight


def _choose_exchanges(moves: Sequence[_Move], excess: list[float], budget: int) -> list[int]:
    """Pairs of moves between two members that lower the sum together, and not alone."""
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
        # The lightest that leaves less than the difference of the two to move.
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
