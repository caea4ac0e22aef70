"""Converts the counts of shares to partitions."""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, Ints, Members
from muster.assignors.shares.count_placement import find_excess
from muster.assignors.shares.member_shares import NO_BUNDLE, ShareGraph, Shares


def place_shares(shares: Shares, bundle: Ints, holder_plus_one: Ints) -> Members:
    """Choose the partitions to give up, and assign them and the unowned ones."""
    graph, held, count = shares.graph, shares.held, shares.count
    holder_plus_one[find_excess(holder_plus_one, held, count)] = 0
    free = np.flatnonzero((holder_plus_one == 0) & (bundle != NO_BUNDLE))
    free = np.sort((bundle[free] << 32) | free) & ((1 << 32) - 1)
    holder_plus_one[free] = _receivers(graph, np.minimum(held, count), count) + 1
    target = np.append(NOBODY, graph.member).astype(np.int32)
    return target[holder_plus_one]


def _receivers(graph: ShareGraph, kept: Ints, count: Ints) -> Ints:
    """The shares that get partitions, by bundle, in turn: those that keep the fewest first."""
    gets = count - kept
    share = np.repeat(np.arange(graph.shares), gets)
    turn = np.arange(len(share)) - np.repeat(np.cumsum(gets) - gets - kept, gets)
    turns = int(turn.max(initial=0)) + 1
    key = (graph.bundle[share] * turns + turn) * graph.shares + share
    return np.sort(key) % graph.shares
