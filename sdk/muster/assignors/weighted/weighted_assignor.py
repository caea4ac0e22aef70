"""The `weighted` assignor: equal weight instead of equal counts, with few moves.

Partitions keep their owners as long as no member exceeds its fair share by more than the skew
limit, and none is so far below it that it lacks a whole partition. Unowned partitions are assigned
heaviest first, each to the member with the most capacity left (Graham's longest-processing-time
rule). A member's fair share is its load if partitions could be split arbitrarily.
"""

from __future__ import annotations

import heapq

import numpy as np

from muster.assignors.problem import (
    NOBODY,
    Floats,
    Ints,
    Members,
    Problem,
    Weights,
)
from muster.assignors.shares.fair_shares import compute_fair_loads
from muster.assignors.shares.member_shares import NO_BUNDLE, ShareGraph, find_shares, make_graph
from muster.assignors.uniform.uniform_assignor import assign_uniform
from muster.assignors.weighted.weighted_moves import WeightedShares, even_out

_VERY_MANY = 1_000
_FAR_TOO_MUCH = 2.0  # times the fair share


def assign_weighted(problem: Problem) -> Members:
    """The member of each partition; NOBODY if no member subscribes.

    Partitions of weight 0 are balanced by count, and so are all if no weights are given or all are
    0.
    """
    weights = problem.weights
    if weights is None or not weights.of_partition.any():
        return assign_uniform(problem)
    heavy = weights.of_partition > 0
    if heavy.all():
        return _assign_heavy(problem, weights)
    target = np.full(problem.partitions, NOBODY, dtype=np.int32)
    heavy_ones = problem.restrict(heavy, problem.fixed)
    assert heavy_ones.weights is not None
    target[heavy] = _assign_heavy(heavy_ones, heavy_ones.weights)
    target[~heavy] = assign_uniform(problem.restrict(~heavy))
    return target


def _assign_heavy(problem: Problem, weights: Weights) -> Members:
    graph = make_graph(problem)
    if graph is None:
        return np.full(problem.partitions, NOBODY, dtype=np.int32)
    bundle = graph.bundle_of_topic[problem.topic_of_partition()]
    share = find_shares(graph, bundle, problem.owner) - 1
    fixed = problem.fixed.weight if problem.fixed is not None else np.zeros(problem.members)
    fair = compute_fair(graph, bundle, weights.of_partition, fixed)
    _release(graph, share, weights.of_partition, fixed, fair)
    _deal(graph, bundle, share, weights.of_partition, fixed)
    shares = WeightedShares.of(graph, share, weights.of_partition, fixed, fair)
    even_out(shares, weights.skew_limit)
    return np.append(NOBODY, graph.member).astype(np.int32)[shares.share + 1]


def compute_fair(graph: ShareGraph, bundle: Ints, weight: Floats, fixed: Floats) -> Floats:
    """Per member, its fair load. `bundle` is per partition; NO_BUNDLE excludes it."""
    assignable = bundle != NO_BUNDLE
    in_bundle: Floats = np.zeros(graph.bundles)
    np.add.at(in_bundle, bundle[assignable], weight[assignable])
    return compute_fair_loads(graph, in_bundle, fixed)


def _release(graph: ShareGraph, share: Ints, weight: Floats, fixed: Floats, fair: Floats) -> None:
    """Revoke all but the lightest partitions of members that have very many and are overloaded.

    Moving them one by one would take a step for each.
    """
    held = np.flatnonzero(share >= 0)
    owner = graph.member[share[held]]
    load = np.bincount(owner, weight[held], minlength=graph.members) + fixed
    count = np.bincount(owner, minlength=graph.members)
    for member in np.flatnonzero((count > _VERY_MANY) & (load > _FAR_TOO_MUCH * fair)).tolist():
        own = held[owner == member]
        own = own[np.lexsort((own, weight[own]))]
        kept = np.cumsum(weight[own]) <= fair[member] - fixed[member]
        share[own[~kept]] = -1


def _deal(
    graph: ShareGraph,
    bundle: Ints,
    share: Ints,
    weight: Floats,
    fixed: Floats,
) -> None:
    """Assign unowned partitions, heaviest first, to the subscriber with the lowest load."""
    free = np.flatnonzero((share < 0) & (bundle != NO_BUNDLE))
    if len(free) == 0:
        return
    free = free[np.lexsort((free, -weight[free]))]
    kept = share >= 0
    load = np.bincount(graph.member[share[kept]], weight[kept], minlength=graph.members) + fixed
    in_order = zip(bundle[free].tolist(), weight[free].tolist(), strict=True)
    deal = _deal_one_bundle if graph.bundles == 1 else _deal_bundles
    share[free] = deal(graph, list(in_order), load)


def _deal_one_bundle(
    graph: ShareGraph, in_order: list[tuple[int, float]], load: Floats
) -> list[int]:
    heap = [(load, share) for share, load in enumerate(load[graph.member].tolist())]
    heapq.heapify(heap)
    chosen = []
    for _, heavy in in_order:
        least, share = heap[0]
        heapq.heapreplace(heap, (least + heavy, share))
        chosen.append(share)
    return chosen


def _deal_bundles(graph: ShareGraph, in_order: list[tuple[int, float]], load: Floats) -> list[int]:
    """As `_deal_one_bundle`, but a member's load counts in all of its bundles."""
    load_of_share = load[graph.member]
    shares_of = {member: graph.shares_of(member) for member in graph.active.tolist()}
    members = graph.member.tolist()
    starts = graph.bundle_start.tolist()
    chosen = []
    for bundle, heavy in in_order:
        first = starts[bundle]
        share = first + int(load_of_share[first : starts[bundle + 1]].argmin())
        load_of_share[shares_of[members[share]]] += heavy
        chosen.append(share)
    return chosen
