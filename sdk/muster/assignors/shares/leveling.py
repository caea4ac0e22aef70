"""Balances shares one bundle at a time.

These steps do most of the work in few operations. Improvements that need partitions of several
bundles to move together are left to `muster.assignors.shares.exchange`.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import Ints
from muster.assignors.shares.member_shares import Shares

_MAX_SWEEPS = 16


def pour(load: Ints, units: int, first: Ints | None = None) -> Ints:
    """How many of the units each member gets if each unit goes to a member with the lowest load.

    The last units, too few for all members at the lowest load, go first to those that would get
    less than `first`, then by position.
    """
    ascending = np.sort(load)
    below = ascending.cumsum()
    to_reach = ascending * np.arange(1, len(load) + 1) - below
    receivers = int(to_reach.searchsorted(units, side="right"))
    level, odd = divmod(units + int(below[receivers - 1]), receivers)
    gets = np.maximum(level - load, 0)
    if odd:
        candidates = (load <= level).nonzero()[0]
        if first is not None:
            marked = first[candidates] > gets[candidates]
            candidates = np.concatenate((candidates[marked], candidates[~marked]))
        gets[candidates[:odd]] += 1
    return gets


def find_imbalance(shares: Shares, fixed: Ints | int = 0) -> tuple[Ints, Ints]:
    """Per bundle: (the highest load of a member that can give some of it, the lowest load).

    `fixed`: per share, partitions that cannot be given.
    """
    graph, start = shares.graph, shares.graph.bundle_start[:-1]
    load = shares.load[graph.member]
    highest = np.maximum.reduceat(np.where(shares.count > fixed, load, -1), start)
    return highest, np.minimum.reduceat(load, start)


def is_locally_balanced(shares: Shares) -> bool:
    """Whether no move of a single partition makes the loads more even (KIP-54's balance)."""
    highest, lowest = find_imbalance(shares)
    return bool((highest - lowest).max() <= 1)


def deal_unassigned(shares: Shares) -> None:
    """Give unassigned partitions to the least loaded subscribers."""
    graph = shares.graph
    unassigned = shares.unassigned()
    for bundle in np.flatnonzero(unassigned).tolist():
        at = graph.subscribers(bundle)
        member = graph.member[at]
        gets = pour(shares.load[member], int(unassigned[bundle]))
        shares.count[at] += gets
        shares.load[member] += gets


def hand_over(shares: Shares) -> None:
    """Move partitions from members above the group's average directly to members below it.

    Unowned ones go first: moving them costs nothing.
    """
    graph = shares.graph
    average = int(shares.load[graph.active].sum()) // len(graph.active)
    nothing = np.zeros_like(shares.count)
    owned = np.minimum(shares.count, shares.held)
    for fixed in (owned, nothing) if shares.has_unowned() else (nothing,):
        # (givers keep, takers get) up to this load; both stay on their side of the average
        for keep, upto in ((average + 1, average), (average + 1, average + 1), (average, average)):
            load = shares.active_loads()
            if load.max() <= keep or load.min() >= upto:
                continue
            highest, lowest = find_imbalance(shares, fixed)
            for bundle in np.flatnonzero((highest > keep) & (lowest < upto)).tolist():
                if _hand_over_bundle(shares, bundle, fixed, keep, upto):
                    load = shares.active_loads()
                    if load.max() <= keep or load.min() >= upto:
                        break


def _hand_over_bundle(shares: Shares, bundle: int, fixed: Ints, keep: int, upto: int) -> int:
    at = shares.graph.subscribers(bundle)
    member = shares.graph.member[at]
    load = shares.load[member]
    can_give = np.maximum(np.minimum(load - keep, shares.count[at] - fixed[at]), 0)
    can_take = np.maximum(upto - load, 0)
    amount = min(int(can_give.sum()), int(can_take.sum()))
    if amount:
        change = skim(-load, can_take, amount) - skim(load, can_give, amount)
        shares.count[at] += change
        shares.load[member] += change
    return amount


def skim(load: Ints, available: Ints, units: int) -> Ints:
    """How many of the units each member gives if each unit comes from the highest load.

    `available`: per member, how many it can give; at least `units` in total.
    """
    if int(available.sum()) == units:
        return available
    # Down to `low` members give enough, down to `high` they do not.
    low, high = int((load - available).min()) - 1, int(load.max())
    while high - low > 1:
        level = (low + high) // 2
        enough = int(np.minimum(available, np.maximum(load - level, 0)).sum()) >= units
        low, high = (level, high) if enough else (low, level)
    gives = np.minimum(available, np.maximum(load - high, 0))
    odd = np.flatnonzero((load > low) & (gives < available))[: units - int(gives.sum())]
    gives[odd] += 1
    return gives


def level_bundles(shares: Shares) -> None:
    """Level one bundle after another until no single move improves the balance.

    The number of sweeps over all bundles is limited: overlapping subscriptions can need many.
    """
    graph = shares.graph
    for _ in range(_MAX_SWEEPS):
        highest, lowest = find_imbalance(shares)
        uneven = np.flatnonzero(highest - lowest >= 2)
        if len(uneven) == 0:
            return
        for bundle in uneven.tolist():
            at = graph.subscribers(bundle)
            member, count = graph.member[at], shares.count[at]
            load = shares.load[member]
            if load[count > 0].max() - load.min() >= 2:
                rest = load - count
                level = pour(rest, int(graph.size[bundle]), first=count)
                shares.count[at] = level
                shares.load[member] = rest + level
