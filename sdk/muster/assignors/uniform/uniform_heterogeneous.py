"""The `uniform` assignor for members with different subscriptions.

It has the goals of UniformHeterogeneousAssignmentBuilder of Kafka 4.3 (in
org.apache.kafka.coordinator.group.assignor) and of KIP-54: no member has two partitions more than
another that could have one of them, and few partitions move. It goes further: unowned partitions
are placed as evenly as subscriptions allow at all; the spread between the highest and the lowest
load is minimal, even if that takes a chain of moves; and of the assignments with the same loads it
takes one with the fewest moves.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import HeterogeneousSubscriptions, Members, Problem
from muster.assignors.shares.exchange import Budget, even_out_unowned, narrow_extremes, save_moves
from muster.assignors.shares.leveling import (
    deal_unassigned,
    hand_over,
    is_locally_balanced,
    level_bundles,
)
from muster.assignors.shares.member_shares import Shares, find_shares, make_share_graph
from muster.assignors.shares.share_placement import place_shares

_MOST_PASSES = 8


def assign_heterogeneous(problem: Problem, subscriptions: HeterogeneousSubscriptions) -> Members:
    """The member of each partition, NOBODY if no member subscribes.

    A complete assignment does not change if no move of a single partition makes it more even and no
    chain of moves brings the highest and the lowest load closer together. In large groups with
    irregularly overlapping subscriptions the search may exhaust its budget; the result is then
    valid, and balanced in the sense of KIP-54 or close to it.
    """
    graph = make_share_graph(problem, subscriptions)
    bundle = graph.bundle_of_topic[problem.topic_of_partition()]
    owner_number = find_shares(graph, bundle, problem.owner)
    held = np.bincount(owner_number, minlength=graph.shares + 1)[1:]
    fixed = problem.fixed.partitions if problem.fixed is not None else None
    shares = Shares.keeping(graph, held, fixed)
    _balance(shares)
    return place_shares(shares, bundle, owner_number)


def _balance(shares: Shares) -> None:
    budget = Budget.for_graph(shares.graph)
    if not shares.unassigned().any() and is_locally_balanced(shares):
        spread = shares.spread()
        narrow_extremes(shares, budget)
        if shares.spread() == spread:
            return
    deal_unassigned(shares)
    hand_over(shares)
    for _ in range(_MOST_PASSES):
        level_bundles(shares)
        if shares.spread() > 1:
            even_out_unowned(shares, budget)
            narrow_extremes(shares, budget)
        save_moves(shares, budget)
        if is_locally_balanced(shares):
            return
