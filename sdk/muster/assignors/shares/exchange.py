"""Balances shares across several bundles.

If one member cannot give to another directly, it may give a partition of one bundle to a third
member, which passes on one of another bundle. `even_out_unowned` and `narrow_extremes` search for
such chains from high to low loads; `save_moves` for rings that let owners keep more partitions,
with the same number of members at each load.

All are shortest-path searches (Bellman and Ford's) over all shares at once. They stop when nothing
is left to find or when the budget is spent: the result is then still valid, but less good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.problem import Flags, Ints
from muster.assignors.shares.member_shares import ShareGraph, Shares

_FAR = 1 << 29  # exceeds any cost; twice as much still fits when shifted
_INDEX_BITS = 32
_INDEX = (1 << _INDEX_BITS) - 1
_NONE = -1
_SHARES_IN_BUDGET = 2_000_000
_ROUND_IN_SHARES = 10_000  # the fixed cost of a round
_FEWEST_ROUNDS = 16


@dataclass(slots=True)
class Budget:
    """How many more passes over all shares are allowed; not a time, so results are repeatable."""

    rounds: int

    @staticmethod
    def for_graph(graph: ShareGraph) -> Budget:
        return Budget(max(_FEWEST_ROUNDS, _SHARES_IN_BUDGET // (graph.shares + _ROUND_IN_SHARES)))

    def spend(self) -> bool:
        self.rounds -= 1
        return self.rounds >= 0


@dataclass(slots=True, eq=False)
class _Search:
    """The least costs found so far, and their paths.

    `cost[m]` is the least cost of what follows once member m gives a partition away: from share
    `gives[m]` to share `takes[m]`, and on from `successor[m]`. `entry_cost[b]` is the least cost of
    passing on a partition of bundle b, through `entry[b]`.

    A cost and its share are packed into one number, with the cost in the high bits, so that a
    minimum yields both.
    """

    graph: ShareGraph
    giving: Ints  # shares by member: the cost of giving one, and the share
    taking: Ints  # shares: the cost of taking one, and the share
    cost: Ints
    entry_cost: Ints
    entry: Ints
    gives: Ints
    takes: Ints
    successor: Ints

    @staticmethod
    def start(graph: ShareGraph, cost: Ints, giving: Ints, taking: Ints) -> _Search:
        """`cost`: per member, if nothing follows; `giving` and `taking`: per share."""
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
        """Extend all paths by one step. Whether any cost fell."""
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
    """Move along chains that give away only partitions their members do not own yet."""
    while shares.has_unowned():
        if not _move_along_chains(shares, budget, np.minimum(shares.count, shares.held)):
            return


def narrow_extremes(shares: Shares, budget: Budget) -> None:
    """Move along any chains that narrow the gap between the group's extreme loads.

    Moves that do not narrow it in the end are undone: they would cost owners partitions for
    nothing.
    """
    free = np.zeros_like(shares.held)
    best = shares.copy()
    while best.spread() > 1 and _move_along_chains(shares, budget, free, extremes=True):
        if shares.spread() < best.spread():
            best = shares.copy()
    shares.count, shares.load = best.count, best.load


def _move_along_chains(shares: Shares, budget: Budget, fixed: Ints, extremes: bool = False) -> bool:
    """Search once, and move along each chain found. Whether there was any.

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
    """Move one partition along each link, unless moves since the search prevent it."""
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
    """Apply rings of shares while that leaves more partitions with their owners.

    With `preferred` shares: while that puts more partitions into these, or as many, with fewer
    moves.
    """
    bonus = np.zeros_like(shares.count)
    if preferred is not None:
        bonus[preferred] = shares.graph.members + 2  # exceeds all moves of one ring
    while preferred is not None or shares.moves() > shares.fewest_moves():
        to_take = np.where(shares.count < shares.held, -1, 0) - bonus
        to_give = np.where(shares.count > shares.held, 0, 1) + bonus
        to_give[shares.count == 0] = _FAR
        search = _Search.start(shares.graph, np.zeros_like(shares.load), to_give, to_take)
        trade = _Trade.of(shares)
        rings: list[list[int]] = []
        # `|`, not `or`: both must take their step
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
    """Lets a member end with one more partition if one with a load one higher loses one."""

    by_load: Ints  # the active members
    group_start: Ints  # the start of each load in by_load
    one_more: Ints  # groups whose next group has a load one higher

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
    """Disjoint rings of members along ``successor``."""
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
