"""Converts the counts of shares to partitions."""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, Ints, Members
from muster.assignors.shares.count_placement import find_excess
from muster.assignors.shares.member_shares import NO_BUNDLE, ShareGraph, Shares


def place_shares(shares: Shares, bundle: Ints, owner_number: Ints) -> Members:
    """Choose the partitions to give up, and assign them and the unowned ones."""
    graph, held, count = shares.graph, shares.held, shares.count
    owner_number[find_excess(owner_number, held, count)] = 0
    free = np.flatnonzero((owner_number == 0) & (bundle != NO_BUNDLE))
    free = np.sort((bundle[free] << 32) | free) & ((1 << 32) - 1)
    owner_number[free] = _receivers(graph, np.minimum(held, count), count) + 1
    target = np.append(NOBODY, graph.member).astype(np.int32)
    return target[owner_number]


def _receivers(graph: ShareGraph, kept: Ints, count: Ints) -> Ints:
    """The shares that get partitions, by bundle, in turn: those that keep the fewest first."""
    gets = count - kept
    share = np.repeat(np.arange(graph.shares), gets)
    turn = np.arange(len(share)) - np.repeat(np.cumsum(gets) - gets - kept, gets)
    turns = int(turn.max(initial=0)) + 1
    key = (graph.bundle[share] * turns + turn) * graph.shares + share
    return np.sort(key) % graph.shares
