"""Balancing shares over several bundles at once.

Where one member cannot give to another directly, it may give a partition of one bundle to a
third, which gives one of another bundle on. `even_out_unowned` and `narrow_extremes` look for such
chains from high to low loads, `save_moves` for rings that let owners keep more and leave as many
members with each load as there were.

All are shortest-path searches (Bellman and Ford's) over all shares at once. They stop when nothing
is left to find, or when the budget is spent: the result is then still valid, only less good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.problem import Flags, Ints
from muster.assignors.shares.member_shares import ShareGraph, Shares

_FAR = 1 << 29  # more than any cost; twice as much, shifted by the index, is still a number
_INDEX_BITS = 32
_INDEX = (1 << _INDEX_BITS) - 1
_NONE = -1
_SHARES_IN_BUDGET = 2_000_000
_ROUND_IN_SHARES = 10_000  # what a round costs however few shares there are
_FEWEST_ROUNDS = 16


@dataclass(slots=True)
class Budget:
    """How many more times all shares may be looked at. Not time: equal input, equal output."""

    rounds: int

    @staticmethod
    def for_graph(graph: ShareGraph) -> Budget:
        return Budget(max(_FEWEST_ROUNDS, _SHARES_IN_BUDGET // (graph.shares + _ROUND_IN_SHARES)))

    def spend(self) -> bool:
        self.rounds -= 1
        return self.rounds >= 0


@dataclass(slots=True, eq=False)
class _Search:
    """Least costs so far, and the way they were found.

    `cost[m]` is the least cost of what can follow when member m gives a partition away:
    of share `gives[m]`, to the member of share `takes[m]`, and so on from `successor[m]`.
    `entry_cost[b]` is the least cost of handing on a partition of bundle b, through `entry[b]`.

    A cost and the share it belongs to are kept in one number, the cost in its high bits, so that
    the minimum of many such numbers tells both.
    """

    graph: ShareGraph
    giving: Ints  # shares by member: what it costs that the count falls by one, and which share
    taking: Ints  # shares: what it costs that the count rises by one, and which share
    cost: Ints
    entry_cost: Ints
    entry: Ints
    gives: Ints
    takes: Ints
    successor: Ints

    @staticmethod
    def start(graph: ShareGraph, cost: Ints, giving: Ints, taking: Ints) -> _Search:
        """`cost`: per member, of nothing following; `giving` and `taking`: per share."""
        return _Search(
            graph,
            (giving[graph.by_member] << _INDEX_BITS) + graph.by_member,
            (taking << _INDEX_BITS) + np.arange(graph.shares),
            cost,
            np.full(graph.bundles, _FAR),
            np.full(graph.bundles, _NONE),
            np.full(graph.members, _NONE),
            np.full(graph.members, _NONE),
            np.full(graph.members, _NONE),
        )

    def relax(self) -> bool:
        """One step further back along all shares. Whether anything became cheaper."""
        graph = self.graph
        through = (self.cost << _INDEX_BITS)[graph.member] + self.taking
        best = np.minimum.reduceat(through, graph.bundle_start[:-1])
        bundle = np.flatnonzero(best >> _INDEX_BITS < self.entry_cost)
        if len(bundle) == 0:
            return False
        self.entry_cost[bundle] = best[bundle] >> _INDEX_BITS
        self.entry[bundle] = best[bundle] & _INDEX
        through = (self.entry_cost << _INDEX_BITS)[graph.bundle_by_member] + self.giving
        best = np.minimum.reduceat(through, graph.active_start)
        cheaper = np.flatnonzero(best >> _INDEX_BITS < self.cost[graph.active])
        member = graph.active[cheaper]
        self.cost[member] = best[cheaper] >> _INDEX_BITS
        self.gives[member] = best[cheaper] & _INDEX
        self.takes[member] = self.entry[graph.bundle[self.gives[member]]]
        self.successor[member] = graph.member[self.takes[member]]
        return len(member) > 0


def even_out_unowned(shares: Shares, budget: Budget) -> None:
    """Move along chains that give away nothing but what nobody has owned so far."""
    while shares.has_unowned():
        if not _move_along_chains(shares, budget, np.minimum(shares.count, shares.held)):
            return


def narrow_extremes(shares: Shares, budget: Budget) -> None:
    """Move along any chains that bring the group's highest and lowest load closer together.

    What does not get there in the end is undone: it would cost owners partitions for nothing.
    """
    free = np.zeros_like(shares.held)
    best = shares.copy()
    while best.spread() > 1 and _move_along_chains(shares, budget, free, extremes=True):
        if shares.spread() < best.spread():
            best = shares.copy()
    shares.count, shares.load = best.count, best.load


def _move_along_chains(shares: Shares, budget: Budget, fixed: Ints, extremes: bool = False) -> bool:
    """One search, and a move along each chain it found. Whether there was any.

    `fixed`: per share, partitions that cannot be given.
    """
    giving = np.where(shares.count > fixed, 0, _FAR)
    lowest_in_reach = shares.load.copy()
    search = _Search.start(shares.graph, lowest_in_reach, giving, np.zeros_like(giving))
    while search.relax():
        if not budget.spend():
            return False
    improvable = shares.load - lowest_in_reach >= 2
    if extremes:
        load = shares.active_loads()
        improvable &= (shares.load == load.max()) | (lowest_in_reach == load.min())
    found = np.flatnonzero(improvable)
    for member in found[np.argsort(-shares.load[found], kind="stable")].tolist():
        _move_along_chain(shares, search, member, fixed)
    return len(found) > 0


def _move_along_chain(shares: Shares, search: _Search, member: int, fixed: Ints) -> None:
    """Move one partition along each link, unless moves made since the search are in the way."""
    gives, takes = [], []
    last = member
    while search.successor[last] != _NONE:
        gives.append(search.gives[last])
        takes.append(search.takes[last])
        last = search.successor[last]
    if shares.load[member] - shares.load[last] >= 2 and (shares.count[gives] > fixed[gives]).all():
        shares.count[gives] -= 1
        shares.count[takes] += 1
        shares.load[member] -= 1
        shares.load[last] += 1


def save_moves(shares: Shares, budget: Budget, preferred: Flags | None = None) -> None:
    """Turn rings of shares while that leaves more partitions where they are.

    With `preferred` shares: while that leaves more in these, or as many and more where they are.
    """
    bonus = np.zeros_like(shares.count)
    if preferred is not None:
        bonus[preferred] = shares.graph.members + 2  # more than all moves of one ring
    while preferred is not None or shares.moves() > shares.fewest_moves():
        to_take = np.where(shares.count < shares.held, -1, 0) - bonus
        to_give = np.where(shares.count > shares.held, 0, 1) + bonus
        to_give[shares.count == 0] = _FAR
        search = _Search.start(shares.graph, np.zeros_like(shares.load), to_give, to_take)
        trade = _Trade.of(shares)
        rings: list[list[int]] = []
        # `|`, not `or`: both take their step each time
        while not rings and search.relax() | trade.relax(search):
            if not budget.spend():
                return
            rings = _find_rings(search.successor)
        if not rings:
            return
        for ring in rings:
            _turn_ring(shares, search, ring)


@dataclass(slots=True, eq=False)
class _Trade:
    """A member may end with one partition more if another that has one more ends with one less."""

    by_load: Ints  # the active members
    group_start: Ints  # where each load begins in by_load
    one_more: Ints  # per group with a group of one more: its number

    @staticmethod
    def of(shares: Shares) -> _Trade:
        load = shares.active_loads()
        order = np.argsort(load, kind="stable")
        ascending = load[order]
        start = np.concatenate(([0], np.flatnonzero(np.diff(ascending)) + 1))
        one_more = np.flatnonzero(np.diff(ascending[start]) == 1)
        return _Trade(shares.graph.active[order], start, one_more)

    def relax(self, search: _Search) -> bool:
        cost = (search.cost[self.by_load] << _INDEX_BITS) + np.arange(len(self.by_load))
        best = np.minimum.reduceat(cost, self.group_start)
        changed = False
        ends = np.append(self.group_start[1:], len(self.by_load))
        for group in self.one_more.tolist():
            least = best[group + 1] >> _INDEX_BITS
            member = self.by_load[self.group_start[group] : ends[group]]
            member = member[search.cost[member] > least]
            if len(member):
                search.cost[member] = least
                search.gives[member] = _NONE
                search.successor[member] = self.by_load[best[group + 1] & _INDEX]
                changed = True
        return changed


def _find_rings(successor: Ints) -> list[list[int]]:
    """The rings of members that lead back to themselves; no two share a member."""
    following = successor.tolist()
    seen: dict[int, int] = {}
    rings = []
    for start in np.flatnonzero(successor != _NONE).tolist():
        path = []
        member = start
        while member != _NONE and member not in seen:
            seen[member] = start
            path.append(member)
            member = following[member]
        if member != _NONE and seen[member] == start:
            rings.append(path[path.index(member) :])
    return rings


def _turn_ring(shares: Shares, search: _Search, ring: list[int]) -> None:
    for member in ring:
        if search.gives[member] != _NONE:
            shares.count[search.gives[member]] -= 1
            shares.count[search.takes[member]] += 1
            shares.load[member] -= 1
            shares.load[search.successor[member]] += 1
