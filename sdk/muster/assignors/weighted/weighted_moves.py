"""Moves weight from overloaded to underloaded members.

Each step moves one partition or exchanges two, chosen to bring a member to its fair share in few
steps. It is a local search, which stops when no step helps.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

import numpy as np

from muster.assignors.problem import Floats, Ints
from muster.assignors.shares.member_shares import ShareGraph

_MOST_PASSES = 8
_PARTNERS = 4  # members tried for an exchange if none can just take
_ROUNDING = 1e-9
_MANY = 1.5  # times the mean partition count: an underloaded member takes no more beyond it

Entry = tuple[float, int]
"""A partition's weight and number."""


@dataclass(slots=True, eq=False)
class WeightedShares:
    """The partitions of each share, and the members' loads."""

    graph: ShareGraph
    share: Ints
    """Per partition: its share, or -1 if no member may have it."""
    weight: Floats
    load: Floats
    """Per member."""
    fair: Floats
    """Per member: its fair load."""
    count: Ints
    """Per share: its number of partitions."""
    by_share: Ints
    """The partitions, by share, then weight, then number."""
    share_start: Ints
    lightest: Floats
    """Per share: the lowest weight in it; infinite if it is empty."""
    excess: Floats
    """Per share: its member's load above the fair load."""
    lists: dict[int, list[Entry]] = field(default_factory=dict)
    """The entries of each share read so far, lightest first."""

    @staticmethod
    def of(
        graph: ShareGraph, share: Ints, weight: Floats, fixed: Floats, fair: Floats
    ) -> WeightedShares:
        placed = np.flatnonzero(share >= 0)
        load: Floats = np.bincount(
            graph.member[share[placed]], weight[placed], minlength=graph.members
        ).astype(np.float64)
        order = placed[np.lexsort((placed, weight[placed], share[placed]))]
        start = np.searchsorted(share[order], np.arange(graph.shares + 1))
        count = np.diff(start)
        lightest = np.full(graph.shares, np.inf)
        lightest[count > 0] = weight[order[start[:-1][count > 0]]]
        load = load + fixed
        excess = (load - fair)[graph.member]
        return WeightedShares(
            graph, share, weight, load, fair, count, order, start, lightest, excess
        )

    def entries(self, share: int) -> list[Entry]:
        """The partitions of the share, lightest first."""
        found = self.lists.get(share)
        if found is None:
            at = self.by_share[self.share_start[share] : self.share_start[share + 1]]
            found = list(zip(self.weight[at].tolist(), at.tolist(), strict=True))
            self.lists[share] = found
        return found

    def move(self, entry: Entry, giver: int, taker: int) -> None:
        """Move a partition from one share of a bundle to another."""
        weight, partition = entry
        given = self.entries(giver)
        del given[bisect_left(given, entry)]
        insort(self.entries(taker), entry)
        for share in (giver, taker):
            left = self.entries(share)
            self.lightest[share] = left[0][0] if left else np.inf
        self.share[partition] = taker
        self.count[giver] -= 1
        self.count[taker] += 1
        self._load(int(self.graph.member[giver]), -weight)
        self._load(int(self.graph.member[taker]), weight)

    def _load(self, member: int, weight: float) -> None:
        self.load[member] += weight
        self.excess[self.graph.shares_of(member)] = self.load[member] - self.fair[member]

    def shares_of(self, member: int) -> list[int]:
        """All shares of a member that has any."""
        found: list[int] = self.graph.shares_of(member).tolist()
        return found


def even_out(shares: WeightedShares, skew_limit: float) -> None:
    """Move until no member is overloaded or far underloaded, or no single step helps."""
    highest = shares.fair * (1 + skew_limit)
    lowest = shares.fair * (1 - skew_limit)
    for _ in range(_MOST_PASSES):
        if not relieve(shares, highest) and not feed(shares, lowest, highest):
            return


def relieve(shares: WeightedShares, highest: Floats) -> bool:
    """Let members above their maximum give up partitions; return whether any moved."""
    margin = _ROUNDING * float(shares.load.max(initial=0.0))
    excess = shares.load - shares.fair
    heap = [
        (-float(excess[member]), member)
        for member in np.flatnonzero(shares.load > highest + margin).tolist()
    ]
    heapq.heapify(heap)
    moved = False
    while heap:
        _, member = heapq.heappop(heap)
        if not _give(shares, member, highest) and not _exchange(shares, member, highest):
            continue
        moved = True
        if shares.load[member] > highest[member] + margin:
            heapq.heappush(heap, (float(shares.fair[member] - shares.load[member]), member))
    return moved


def _give(shares: WeightedShares, member: int, highest: Floats) -> bool:
    """Give one partition, if that leaves both members better off than the worse one was."""
    excess = float(shares.load[member] - shares.fair[member])
    need = float(shares.load[member] - highest[member])
    best: tuple[tuple[int, float], Entry, int, int] | None = None
    for giver in shares.shares_of(member):
        if not shares.count[giver]:
            continue
        taker = _find_taker(shares, giver)
        to = int(shares.graph.member[taker])
        entries = shares.entries(giver)
        below = excess - float(shares.load[to] - shares.fair[to])
        room = float(highest[to] - shares.load[to])
        entry = _choose_gift(entries, need, room, below)
        if entry is None:
            continue
        weight = entry[0]
        if need <= weight <= room:
            rank = (0, weight)
        elif weight <= room:
            rank = (1, -weight)
        else:
            rank = (2, weight)
        if best is None or rank < best[0]:
            best = (rank, entry, giver, taker)
    if best is None:
        return False
    _, entry, giver, taker = best
    shares.move(entry, giver, taker)
    return True


def _choose_gift(entries: list[Entry], need: float, room: float, below: float) -> Entry | None:
    """The lightest that suffices and fits; else the heaviest that fits; else the most helpful.

    `below`: how much further below its fair share the taker is. Heavier partitions do not help.
    """
    end = bisect_left(entries, (below * (1 - _ROUNDING), -1))
    if end == 0:
        return None
    enough = bisect_left(entries, (need, -1))
    if enough < end and entries[enough][0] <= room:
        return entries[enough]
    fitting = bisect_right(entries, (room, len(entries) and entries[-1][1] + 1))
    if 0 < fitting <= end:
        return entries[fitting - 1]
    middle = bisect_left(entries, (below / 2, -1))
    nearby = [entries[place] for place in (middle - 1, middle) if 0 <= place < end]
    return min(nearby, key=lambda entry: (abs(entry[0] - below / 2), entry))


def _find_taker(shares: WeightedShares, giver: int) -> int:
    """The share of the same bundle whose member has the lowest excess."""
    at = shares.graph.subscribers(int(shares.graph.bundle[giver]))
    return int(at.start) + int(np.argmin(shares.excess[at]))


def _find_lowest(values: Floats, count: int) -> list[int]:
    """The positions of the lowest values, ascending; the first of equal ones."""
    if len(values) > 4 * count:
        limit = np.partition(values, count)[count]
        places = np.flatnonzero(values <= limit)
    else:
        places = np.arange(len(values))
    found: list[int] = places[np.argsort(values[places], kind="stable")[:count]].tolist()
    return found


def _exchange(shares: WeightedShares, member: int, highest: Floats) -> bool:
    """Exchange a partition for a lighter one, if that leaves both better off than the worse was."""
    graph = shares.graph
    need = float(shares.load[member] - highest[member])
    for giver in shares.shares_of(member):
        if not shares.count[giver]:
            continue
        at = graph.subscribers(int(graph.bundle[giver]))
        excess = shares.excess[at]
        own = float(shares.load[member] - shares.fair[member])
        for place in _find_lowest(excess, _PARTNERS):
            below = own - float(excess[place])
            partner = at.start + place
            if below <= need or partner == giver or not shares.count[partner]:
                continue
            pair = _choose_pair(shares.entries(giver), shares.entries(partner), need, below)
            if pair is not None:
                shares.move(pair[0], giver, partner)
                shares.move(pair[1], partner, giver)
                return True
    return False


def _choose_pair(
    giving: list[Entry], taking: list[Entry], need: float, below: float
) -> tuple[Entry, Entry] | None:
    """The pair with the least sufficient difference in weight, which must be below `below`."""
    best: tuple[float, Entry, Entry] | None = None
    for entry in giving:
        place = bisect_right(taking, (entry[0] - need, taking[-1][1] + 1)) - 1
        if place < 0:
            continue
        difference = entry[0] - taking[place][0]
        if need <= difference < below * (1 - _ROUNDING) and (best is None or difference < best[0]):
            best = (difference, entry, taking[place])
    return None if best is None else best[1:]


def feed(shares: WeightedShares, lowest: Floats, highest: Floats) -> bool:
    """Let members that lack more than a typical partition take some; return whether any moved.

    Each partition costs a move, however light it is, so members with many partitions take none.
    """
    usual = np.minimum(float(shares.weight[shares.share >= 0].mean()), shares.fair / 2)
    hungry = lowest - usual
    graph = shares.graph
    active = graph.active
    has = np.bincount(graph.member, shares.count, minlength=graph.members)
    many = max(1, int(_MANY * float(shares.count.sum()) / len(active)))
    slack = (shares.fair - hungry)[graph.member]
    moved = False
    for member in active[np.flatnonzero(shares.load[active] < hungry[active])].tolist():
        left = many - int(has[member])
        while left > 0 and shares.load[member] < lowest[member]:
            if not _take(shares, member, slack, float(highest[member])):
                break
            left -= 1
            moved = True
    return moved


def _take(shares: WeightedShares, member: int, slack: Floats, highest: float) -> bool:
    """Take the heaviest partition that leaves its owner with enough.

    `slack`: per share, how far below its fair load its member may end up.
    """
    graph = shares.graph
    room = highest - float(shares.load[member])
    own = float(shares.load[member] - shares.fair[member])
    takers = shares.shares_of(member)
    ranges = [graph.subscribers(int(graph.bundle[taker])) for taker in takers]
    excess = np.concatenate([shares.excess[at] for at in ranges])
    most = np.minimum(excess + np.concatenate([slack[at] for at in ranges]), excess - own)
    most = np.minimum(most, room) * (1 - _ROUNDING)
    lightest = np.concatenate([shares.lightest[at] for at in ranges])
    excess[lightest >= most] = -np.inf
    best: tuple[float, int, Entry, int] | None = None
    first = 0
    for taker, at in zip(takers, ranges, strict=True):
        end = first + at.stop - at.start
        excess[first + taker - at.start] = -np.inf
        place = first + int(excess[first:end].argmax())
        giver = at.start + place - first
        first = end
        if excess[place] == -np.inf:
            continue
        entries = shares.entries(giver)
        entry = entries[bisect_left(entries, (float(most[place]), -1)) - 1]
        if best is None or (-entry[0], giver) < (-best[0], best[1]):
            best = (entry[0], giver, entry, taker)
    if best is None:
        return False
    _, giver, entry, taker = best
    shares.move(entry, giver, taker)
    return True
