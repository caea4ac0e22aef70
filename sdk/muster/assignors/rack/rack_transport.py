"""How many partitions of each kind go to the members of each rack.

Partitions of a *kind* have the same subscribers, and replicas in the same racks. The number of
partitions per rack is given; which kinds they have is improved by rings: each rack passes
partitions of one kind to the next, and the last one to the first. Once no ring helps, no
distribution has more local partitions, and of those with as many none moves fewer partitions out of
their racks (Klein's algorithm for minimum-cost flow).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from muster.assignors.problem import Flags, Ints

_FAR = 1 << 40
_NONE = -1
_LITTLE_WORK = 100_000
_MOST_WORK = 60_000_000  # evaluations of one kind between two racks
_TURN_WORK = 20_000  # the other cost of a search for rings


@dataclass(slots=True)
class Work:
    """The remaining work for all bundles of an assignment, so that it ends in time."""

    left: int = _MOST_WORK


@dataclass(slots=True, eq=False)
class Transport:
    """Rows are kinds, columns racks. `count` changes; the sums of its rows and columns do not.

    A kind with finite `room` is not of partitions: it may be in any rack, up to `room` there.
    """

    count: Ints
    held: Ints
    """How many the members of each rack own."""
    is_local: Flags
    room: Ints
    """How much each count may still grow."""


def deal_locally(transport: Transport) -> None:
    """Find a good start: first keep local owners, then place other partitions locally.

    This visits each kind once, and does nothing if the problem is small enough for rings alone.
    """
    count, held, is_local = transport.count, transport.held, transport.is_local
    kinds, racks = count.shape
    if kinds * racks * racks <= _LITTLE_WORK:
        return
    rest, room = count.sum(axis=1).tolist(), count.sum(axis=0).tolist()
    count[:] = 0
    order = np.lexsort((np.arange(kinds), is_local.sum(axis=1))).tolist()
    local, kept, away = (
        _list_racks(which) for which in (is_local, is_local & (held > 0), ~is_local & (held > 0))
    )

    def take(kind: int, rack: int, most: int) -> None:
        amount = min(most, rest[kind], room[rack])
        if amount:
            count[kind, rack] += amount
            rest[kind] -= amount
            room[rack] -= amount

    for kind in order:
        for rack in kept[kind]:
            take(kind, rack, int(held[kind, rack]))
    for kind in order:
        for rack in sorted(local[kind], key=lambda rack: -room[rack]):
            take(kind, rack, rest[kind])
    for kind in order:
        # Racks where the kind is local are full by now, or have all of it.
        for rack in away[kind] if rest[kind] else ():
            take(kind, rack, int(held[kind, rack]))
    first = 0
    for kind in order:
        while rest[kind] and first < racks:
            take(kind, first, rest[kind])
            first += room[first] == 0


def _list_racks(table: Flags) -> list[list[int]]:
    """For each kind, the racks that the table marks."""
    kind, rack = np.nonzero(table)
    ends = np.searchsorted(kind, np.arange(len(table) + 1)).tolist()
    racks = rack.tolist()
    return [racks[start:end] for start, end in pairwise(ends)]


def improve(transport: Transport, work: Work) -> None:
    """Apply rings until none helps or the work is used up."""
    prices = _Prices.of(transport, work)
    while work.left > 0:
        work.left -= _TURN_WORK + len(prices.cost) ** 3
        rings = _find_rings(prices.cost)
        if not rings:
            return
        turned = []
        for ring in rings:
            steps = [(int(prices.kind[giver, taker]), giver, taker) for giver, taker in ring]
            _turn(transport, steps)
            turned += steps
        prices.update(transport, turned)


@dataclass(slots=True, eq=False)
class _Prices:
    """The cheapest step between each pair of racks, and the kind that it moves.

    Only kinds that a rack has are evaluated for it, and after rings only the racks that changed.
    """

    giving: Ints
    taking: Ints
    givers: list[Ints]
    """Per rack: the kinds that it has."""
    kind: Ints
    cost: Ints
    work: Work

    @staticmethod
    def of(transport: Transport, work: Work) -> _Prices:
        racks = transport.count.shape[1]
        square = (racks, racks)
        nothing: Ints = np.empty((0,), dtype=np.int64)
        found = _Prices(
            np.empty_like(transport.count),
            np.empty_like(transport.count),
            [nothing] * racks,
            np.zeros(square, dtype=np.int64),
            np.full(square, _FAR),
            work,
        )
        found._look_at(transport, np.arange(len(transport.count)))
        found.givers = [np.flatnonzero(column < _FAR) for column in found.giving.T]
        for giver in range(racks):
            found._compare_takers(giver)
        return found

    def update(self, transport: Transport, steps: list[tuple[int, int, int]]) -> None:
        """Update the costs after these steps: their kinds, and the racks that gave or took them."""
        self._look_at(transport, np.unique([kind for kind, _, _ in steps]))
        for kind, giver, taker in steps:
            self._note_giver(kind, giver)
            self._note_giver(kind, taker)
        changed = sorted({giver for _, giver, _ in steps})
        for giver in range(len(self.cost)):
            if giver in changed:
                self._compare_takers(giver)
            else:
                self._compare_takers(giver, changed)

    def _look_at(self, transport: Transport, kinds: Ints) -> None:
        count, held = transport.count[kinds], transport.held[kinds]
        # Exceeds the cost of all moves in one ring.
        local = transport.is_local[kinds] * (transport.count.shape[1] + 2)
        self.giving[kinds] = np.where(count > 0, local + (count <= held), _FAR)
        self.taking[kinds] = np.where(transport.room[kinds] > 0, -local - (count < held), _FAR)

    def _note_giver(self, kind: int, rack: int) -> None:
        kinds = self.givers[rack]
        at = int(kinds.searchsorted(kind))
        is_there = at < len(kinds) and int(kinds[at]) == kind
        if is_there == (int(self.giving[kind, rack]) < _FAR):
            return
        self.givers[rack] = np.delete(kinds, at) if is_there else np.insert(kinds, at, kind)

    def _compare_takers(self, giver: int, takers: list[int] | None = None) -> None:
        """Compare steps to all racks, or to ``takers``."""
        every = np.arange(len(self.cost))
        at = every if takers is None else np.array(takers)
        kinds = self.givers[giver]
        if len(kinds):
            rows = self.taking[kinds] if takers is None else self.taking[np.ix_(kinds, at)]
            through = self.giving[kinds, giver, None] + rows
            self.work.left -= through.size
            cheapest = through.argmin(axis=0)
            self.kind[giver, at] = kinds[cheapest]
            self.cost[giver, at] = through[cheapest, every[: len(cheapest)]]
        else:
            self.cost[giver, at] = _FAR
        self.cost[giver, giver] = _FAR


def _turn(transport: Transport, steps: list[tuple[int, int, int]]) -> None:
    """Move as much as possible until a step costs more; steps are (kind, giver, taker)."""
    count, room = transport.count, transport.room
    amount = min(
        min(_giveable(transport, which, giver), _takeable(transport, which, taker))
        for which, giver, taker in steps
    )
    for which, giver, taker in steps:
        count[which, giver] -= amount
        room[which, giver] += amount
        count[which, taker] += amount
        room[which, taker] -= amount


def _giveable(transport: Transport, kind: int, rack: int) -> int:
    """How many the rack can give before the next one costs more."""
    count, held = int(transport.count[kind, rack]), int(transport.held[kind, rack])
    return count - held if count > held else count


def _takeable(transport: Transport, kind: int, rack: int) -> int:
    """How many the rack can take before the next one saves less."""
    count, held = int(transport.count[kind, rack]), int(transport.held[kind, rack])
    room = int(transport.room[kind, rack])
    return min(room, held - count) if count < held else room


def _find_rings(cost: Ints) -> list[list[tuple[int, int]]]:
    """Disjoint rings of negative total cost; an empty list if there is none.

    A ring is a list of (giver, taker). After Bellman and Ford's search every ring of best givers
    has negative cost.
    """
    racks = len(cost)
    best = np.zeros(racks, dtype=np.int64)
    giver_of = np.full(racks, _NONE)
    for _ in range(racks + 1):
        through = best[:, None] + cost
        cheapest = through.argmin(axis=0)
        found = through[cheapest, np.arange(racks)]
        cheaper = found < best
        if not cheaper.any():
            return []
        best = np.where(cheaper, found, best)
        giver_of = np.where(cheaper, cheapest, giver_of)
    return _list_rings(giver_of.tolist())


def _list_rings(giver_of: list[int]) -> list[list[tuple[int, int]]]:
    seen: dict[int, int] = {}
    rings = []
    for start in range(len(giver_of)):
        rack = start
        while rack != _NONE and rack not in seen:
            seen[rack] = start
            rack = giver_of[rack]
        if rack != _NONE and seen[rack] == start:
            ring: list[tuple[int, int]] = []
            taker = rack
            while not ring or taker != rack:
                ring.append((giver_of[taker], taker))
                taker = giver_of[taker]
            rings.append(ring)
    return rings
