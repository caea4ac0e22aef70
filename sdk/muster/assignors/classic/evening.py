"""Minimizes the balance score of KIP-54, for `sticky`.

`uniform` narrows the spread between the highest and the lowest load and stops there. KIP-54 sums
the differences of all pairs of members: a member between the extremes may still give a partition to
another, directly or along a chain of members that each pass one on. Once no such chain is left the
loads are as even as the subscriptions allow, by any measure (they majorize no others).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.problem import NOBODY, HeterogeneousSubscriptions, Ints, Members, Problem
from muster.assignors.shares.exchange import Budget, save_moves
from muster.assignors.shares.member_shares import (
    NO_BUNDLE,
    ShareGraph,
    Shares,
    find_shares,
    make_share_graph,
)

_NO_SHARE = -1
_SHARES_TO_VISIT = 3_000_000


def even_out(problem: Problem, target: Members) -> Members:
    """A copy of ``target`` as even as possible, and with as few moves as that allows.

    ``target`` must be complete. In large groups with irregularly overlapping subscriptions the
    search may exhaust its budget; the result is then less even, but never less so than ``target``.
    """
    subscriptions = problem.subscriptions
    if not isinstance(subscriptions, HeterogeneousSubscriptions) or problem.partitions == 0:
        return target
    graph = make_share_graph(problem, subscriptions)
    bundle = graph.bundle_of_topic[problem.topic_of_partition()]
    owned = find_shares(graph, bundle, problem.owner) - 1
    shares = Shares.keeping(graph, _count(graph, owned))
    assigned = find_shares(graph, bundle, target) - 1
    shares.count = _count(graph, assigned)
    shares.load = graph.loads(shares.count)
    if shares.spread() < 2 or not _follow_chains(shares):
        return target
    save_moves(shares, Budget.for_graph(graph))
    return _place(shares, bundle, owned, assigned)


def _count(graph: ShareGraph, share: Ints) -> Ints:
    return np.bincount(share[share != _NO_SHARE], minlength=graph.shares)


def _follow_chains(shares: Shares) -> bool:
    """Move partitions along chains until none helps. Whether any did."""
    visits = _SHARES_TO_VISIT
    moved = False
    while visits > 0:
        search = _Search.start(shares)
        search.run()
        if not search.move_along_chains():
            return moved
        moved = True
        visits -= shares.graph.shares
    return moved


@dataclass(slots=True, eq=False)
class _Search:
    """For each member, the lowest load to which it can pass one of its partitions.

    Searches backwards, from the lowest loads up, so that it visits each bundle and member once.
    """

    shares: Shares
    member: list[int]  # shares
    bundle: list[int]  # shares
    count: list[int]  # shares
    load: list[int]  # members
    shares_of: list[list[int]]  # members
    bundle_start: list[int]
    root: dict[int, int]  # member: the end of its chain
    link: dict[int, tuple[int, int]]  # member: the share that gives, the share that takes

    @staticmethod
    def start(shares: Shares) -> _Search:
        graph = shares.graph
        shares_of: list[list[int]] = [[] for _ in range(graph.members)]
        for share in graph.by_member.tolist():
            shares_of[int(graph.member[share])].append(share)
        return _Search(
            shares,
            graph.member.tolist(),
            graph.bundle.tolist(),
            shares.count.tolist(),
            shares.load.tolist(),
            shares_of,
            graph.bundle_start.tolist(),
            {},
            {},
        )

    def run(self) -> None:
        reached: set[int] = set()  # bundles
        active = self.shares.graph.active.tolist()
        for root in sorted(active, key=lambda member: (self.load[member], member)):
            if root in self.root:
                continue
            self.root[root] = root
            waiting = [root]
            for taker in waiting:
                for takes in self.shares_of[taker]:
                    bundle = self.bundle[takes]
                    if bundle not in reached:
                        reached.add(bundle)
                        waiting += self._reach_from(takes, bundle, root)

    def _reach_from(self, takes: int, bundle: int, root: int) -> list[int]:
        """The members not reached before that have a partition of the bundle to give."""
        found = []
        for gives in range(self.bundle_start[bundle], self.bundle_start[bundle + 1]):
            giver = self.member[gives]
            if self.count[gives] and giver not in self.root:
                self.root[giver] = root
                self.link[giver] = gives, takes
                found.append(giver)
        return found

    def move_along_chains(self) -> bool:
        """Move one partition along each chain that still helps, from the highest load down."""
        moved = False
        for member in sorted(self.link, key=lambda m: (-self.load[m], m)):
            root = self.root[member]
            chain = self._chain(member)
            if self.load[member] - self.load[root] >= 2 and all(self.count[g] for g, _ in chain):
                for gives, takes in chain:
                    self.count[gives] -= 1
                    self.count[takes] += 1
                self.load[member] -= 1
                self.load[root] += 1
                moved = True
        self.shares.count = np.array(self.count, dtype=np.int64)
        self.shares.load = np.array(self.load, dtype=np.int64)
        return moved

    def _chain(self, member: int) -> list[tuple[int, int]]:
        chain = []
        while member in self.link:
            chain.append(self.link[member])
            member = self.member[chain[-1][1]]
        return chain


def _place(shares: Shares, bundle: Ints, owned: Ints, assigned: Ints) -> Members:
    """Let owners keep what their counts allow, preferring what ``assigned`` let them keep."""
    graph = shares.graph
    quota = np.minimum(shares.held, shares.count)
    share = owned.copy()
    by_share = np.lexsort((owned != assigned, owned))
    by_share = by_share[owned[by_share] != _NO_SHARE]
    first = np.cumsum(shares.held) - shares.held
    rank = np.arange(len(by_share)) - first[owned[by_share]]
    share[by_share[rank >= quota[owned[by_share]]]] = _NO_SHARE
    free = np.flatnonzero((share == _NO_SHARE) & (bundle != NO_BUNDLE))
    free = free[np.argsort(bundle[free], kind="stable")]
    share[free] = np.repeat(np.arange(graph.shares), shares.count - quota)
    return np.append(graph.member, NOBODY)[share].astype(np.int32)
