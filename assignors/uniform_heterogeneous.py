"""The `uniform` assignor where members subscribe to different topics.

Source of the aims: UniformHeterogeneousAssignmentBuilder of Kafka 4.3 (in
org.apache.kafka.coordinator.group.assignor), and KIP-54: no member has two partitions more than
another that could have one of them, and few partitions move. What goes beyond: unowned partitions
are placed as evenly as subscriptions allow at all; the spread between the highest and the lowest
load is the smallest there is, also where that takes several moves in a chain; and of the
assignments with the same loads one with the fewest moves is taken.
"""

from __future__ import annotations

import numpy as np

from assignors.exchange import Budget, even_out_unowned, narrow_extremes, save_moves
from assignors.leveling import deal_unassigned, hand_over, is_locally_balanced, level_bundles
from assignors.placement import find_excess
from assignors.problem import NOBODY, HeterogeneousSubscriptions, Ints, Members, Problem
from assignors.shares import NO_BUNDLE, ShareGraph, Shares, make_share_graph

_LARGEST_TABLE = 1 << 24
_MOST_PASSES = 8


def assign_heterogeneous(problem: Problem, subscriptions: HeterogeneousSubscriptions) -> Members:
    """The member of each partition, NOBODY where nobody subscribes.

    A complete assignment that no move of a single partition makes more even is left as it is.
    Large groups whose subscriptions overlap without pattern can spend the budget of the search;
    their answer is as balanced as KIP-54 asks, or close to it, and valid.
    """
    graph = make_share_graph(problem, subscriptions)
    bundle = graph.bundle_of_topic[problem.topic_of_partition()]
    holder_plus_one = _find_shares(graph, bundle, problem.owner)
    held = np.bincount(holder_plus_one, minlength=graph.shares + 1)[1:]
    shares = Shares.keeping(graph, held)
    _balance(shares)
    return _place(shares, bundle, holder_plus_one)


def _balance(shares: Shares) -> None:
    if not shares.unassigned().any() and is_locally_balanced(shares):
        return
    deal_unassigned(shares)
    hand_over(shares)
    budget = Budget.for_graph(shares.graph)
    for _ in range(_MOST_PASSES):
        level_bundles(shares)
        if shares.spread() > 1:
            even_out_unowned(shares, budget)
            narrow_extremes(shares, budget)
        save_moves(shares, budget)
        if is_locally_balanced(shares):
            return


def _find_shares(graph: ShareGraph, bundle: Ints, owner: Members) -> Ints:
    """Per partition, one more than the share it is held in; 0 without a subscribed owner."""
    owned = (owner != NOBODY) & (bundle != NO_BUNDLE)
    if not owned.any():
        return np.zeros(len(owner), dtype=np.int64)
    cells = graph.bundles * graph.members
    share_key = graph.bundle * graph.members + graph.member  # ascending
    key = np.where(owned, bundle * graph.members + owner, cells)
    if cells <= _LARGEST_TABLE:
        table = np.zeros(cells + 1, dtype=np.int32)
        table[share_key] = np.arange(1, graph.shares + 1)
        return table[key].astype(np.int64)
    found = np.minimum(np.searchsorted(share_key, key), graph.shares - 1)
    return np.where(share_key[found] == key, found + 1, 0)


def _place(shares: Shares, bundle: Ints, holder_plus_one: Ints) -> Members:
    """Decide which partitions are given up, and deal them and the unowned ones out."""
    graph, held, count = shares.graph, shares.held, shares.count
    holder_plus_one[find_excess(holder_plus_one, held, count)] = 0
    free = np.flatnonzero((holder_plus_one == 0) & (bundle != NO_BUNDLE))
    free = np.sort((bundle[free] << 32) | free) & ((1 << 32) - 1)
    holder_plus_one[free] = _receivers(graph, np.minimum(held, count), count) + 1
    target = np.append(NOBODY, graph.member).astype(np.int32)
    return target[holder_plus_one]


def _receivers(graph: ShareGraph, kept: Ints, count: Ints) -> Ints:
    """The shares that partitions are dealt to, by bundle, in turns: least kept first."""
    gets = count - kept
    share = np.repeat(np.arange(graph.shares), gets)
    turn = np.arange(len(share)) - np.repeat(np.cumsum(gets) - gets - kept, gets)
    turns = int(turn.max(initial=0)) + 1
    key = (graph.bundle[share] * turns + turn) * graph.shares + share
    return np.sort(key) % graph.shares
