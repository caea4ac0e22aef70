"""A balanced assignment in the sense of KIP-54 with fewer moves, for `cooperative-sticky`.

`uniform` brings the highest and the lowest load of the group as close together as possible, also
along chains of members that each pass a partition on. In a cooperative rebalance each of these
partitions is unassigned for one round, so an assignment without such chains may be better.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import HeterogeneousSubscriptions, Members, Problem
from muster.assignors.shares.exchange import Budget, even_out_unowned, save_moves
from muster.assignors.shares.leveling import deal_unassigned, is_locally_balanced, level_bundles
from muster.assignors.shares.member_shares import Shares, find_shares, make_share_graph
from muster.assignors.shares.share_placement import place_shares

_MOST_PASSES = 8


def assign_gently(problem: Problem) -> Members | None:
    """Move a partition only if that alone makes the loads more even.

    ``None`` if that does not balance the group, or if all members have the same subscription:
    `uniform` then makes no unnecessary moves either.
    """
    subscriptions = problem.subscriptions
    if not isinstance(subscriptions, HeterogeneousSubscriptions) or problem.partitions == 0:
        return None
    graph = make_share_graph(problem, subscriptions)
    bundle = graph.bundle_of_topic[problem.topic_of_partition()]
    owner_number = find_shares(graph, bundle, problem.owner)
    held = np.bincount(owner_number, minlength=graph.shares + 1)[1:]
    shares = Shares.keeping(graph, held)
    deal_unassigned(shares)
    budget = Budget.for_graph(graph)
    for _ in range(_MOST_PASSES):
        even_out_unowned(shares, budget)
        level_bundles(shares)
        save_moves(shares, budget)
        if is_locally_balanced(shares):
            return place_shares(shares, bundle, owner_number)
    return None
