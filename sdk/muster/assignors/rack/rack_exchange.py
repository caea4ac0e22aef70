"""Locality gains that need partitions of several bundles to change owners.

Within a bundle `muster.assignors.rack.rack_transport` has already found all gains. The remaining
ones are rings of members with different subscriptions, found by the same search as rings that save
moves.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import Flags, Ints, Members, Problem
from muster.assignors.shares.exchange import Budget, save_moves
from muster.assignors.shares.member_shares import NO_BUNDLE, ShareGraph, Shares, find_shares
from muster.assignors.shares.share_placement import place_shares

_MOST_SHARES = 1_000_000


def exchange_across_bundles(
    problem: Problem,
    graph: ShareGraph,
    bundle: Ints,
    *,
    kind: Ints,
    is_local: Flags,
    rack_of_member: Ints,
    target: Members,
) -> None:
    """Change `target` to make more of it local, with equally balanced loads.

    Does nothing if there are too many shares to search in time. `kind` is per partition, `is_local`
    per kind and rack.
    """
    if _count_fine_shares(graph, bundle, kind) > _MOST_SHARES:
        return
    fine, fine_bundle = _split_bundles(graph, bundle, kind)
    kind_of_bundle = np.zeros(fine.bundles, dtype=np.int64)
    assignable = fine_bundle != NO_BUNDLE
    kind_of_bundle[fine_bundle[assignable]] = kind[assignable]
    local = is_local[kind_of_bundle[fine.bundle], rack_of_member[fine.member]]
    owner_number = find_shares(fine, fine_bundle, problem.owner)
    held = np.bincount(owner_number, minlength=fine.shares + 1)[1:]
    shares = Shares.keeping(
        fine, held, problem.fixed.partitions if problem.fixed is not None else None
    )
    now = np.bincount(find_shares(fine, fine_bundle, target), minlength=fine.shares + 1)[1:]
    if (now[~local] == 0).all():
        return
    shares.load = shares.load + fine.loads(now - held)
    shares.count = now
    before = shares.count.copy()
    save_moves(shares, Budget.for_graph(fine), local)
    if (shares.count != before).any():
        target[:] = place_shares(shares, fine_bundle, owner_number)


def _count_fine_shares(graph: ShareGraph, bundle: Ints, kind: Ints) -> int:
    assignable = bundle != NO_BUNDLE
    kinds = int(kind.max(initial=0)) + 1
    coarse = np.unique(bundle[assignable] * kinds + kind[assignable]) // kinds
    return int(np.diff(graph.bundle_start)[coarse].sum())


def _split_bundles(graph: ShareGraph, bundle: Ints, kind: Ints) -> tuple[ShareGraph, Ints]:
    """The graph with bundles split by kind, and the bundle of each partition."""
    assignable = bundle != NO_BUNDLE
    kinds = int(kind.max(initial=0)) + 1
    key = bundle[assignable] * kinds + kind[assignable]
    found, number, size = np.unique(key, return_inverse=True, return_counts=True)
    fine_bundle = np.full(len(bundle), NO_BUNDLE)
    fine_bundle[assignable] = number
    coarse = found // kinds
    width = np.diff(graph.bundle_start)[coarse]
    start = np.append(0, np.cumsum(width))
    member = graph.member[
        np.arange(start[-1]) + np.repeat(graph.bundle_start[coarse] - start[:-1], width)
    ]
    return graph.regroup(size, start, member), fine_bundle
