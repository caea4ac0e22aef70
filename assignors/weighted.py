"""The `weighted` assignor: members get equal weight, not equal counts, and few partitions move.

Partitions keep their owners as long as nobody has more than its fair share and the skew limit, and
nobody is so far below that it misses a partition. What is dealt out goes heaviest first to whoever
has the most room (Graham's rule of the longest processing time).

A fair share is what a member would have if partitions could be cut at will.
"""

from __future__ import annotations

import heapq

import numpy as np

from assignors.fair_shares import compute_fair_loads
from assignors.problem import (
    NOBODY,
    Floats,
    Ints,
    Members,
    Problem,
    Weights,
)
from assignors.shares import (
    NO_BUNDLE,
    ShareGraph,
    find_shares,
    make_graph,
)
from assignors.uniform import assign_uniform
from assignors.weighted_moves import WeightedShares, even_out


def assign_weighted(problem: Problem) -> Members:
    """The member of each partition; NOBODY where nobody subscribes.

    Partitions that weigh nothing are dealt out by number, and so is everything where no weights
    are given or all are zero.
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
    _deal(graph, bundle, share, weights.of_partition, fixed)
    shares = WeightedShares.of(graph, share, weights.of_partition, fixed, fair)
    even_out(shares, weights.skew_limit)
    return np.append(NOBODY, graph.member).astype(np.int32)[shares.share + 1]


def compute_fair(graph: ShareGraph, bundle: Ints, weight: Floats, fixed: Floats) -> Floats:
    """Per member, its fair load. `bundle`: of each partition; NO_BUNDLE leaves it out."""
    assignable = bundle != NO_BUNDLE
    in_bundle: Floats = np.zeros(graph.bundles)
    np.add.at(in_bundle, bundle[assignable], weight[assignable])
    return compute_fair_loads(graph, in_bundle, fixed)


def _deal(
    graph: ShareGraph,
    bundle: Ints,
    share: Ints,
    weight: Floats,
    fixed: Floats,
) -> None:
    """Give what nobody has, heaviest first, to the subscriber with the least load.

    Loads only grow here: a load in a heap that is out of date is too low, and is put right when
    it comes up.
    """
    free = np.flatnonzero((share < 0) & (bundle != NO_BUNDLE))
    if len(free) == 0:
        return
    free = free[np.lexsort((free, -weight[free]))]
    kept = share >= 0
    load = (
        np.bincount(graph.member[share[kept]], weight[kept], minlength=graph.members) + fixed
    ).tolist()
    heaps: dict[int, list[tuple[float, int, int]]] = {}
    chosen = []
    for in_bundle, heavy in zip(bundle[free].tolist(), weight[free].tolist(), strict=True):
        heap = heaps.get(in_bundle)
        if heap is None:
            first, end = graph.bundle_start[in_bundle : in_bundle + 2].tolist()
            members = graph.member[first:end].tolist()
            heap = [(load[member], member, first + n) for n, member in enumerate(members)]
            heapq.heapify(heap)
            heaps[in_bundle] = heap
        while True:
            known, member, which = heap[0]
            if known == load[member]:
                break
            heapq.heapreplace(heap, (load[member], member, which))
        load[member] += heavy
        heapq.heapreplace(heap, (load[member], member, which))
        chosen.append(which)
    share[free] = chosen
