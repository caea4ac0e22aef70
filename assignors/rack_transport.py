"""How many partitions of each kind go to the members of each rack.

Partitions of a *kind* have the same subscribers and replicas in the same racks. How many partitions
a rack's members have is given; which kinds they are of is improved by rings: one rack hands
partitions of a kind to the next, and the last one hands some to the first. When no ring is left
that helps, no distribution has more partitions beside a replica, and of those that have as many
none takes fewer from the rack where they were (Klein's algorithm for flows of least cost).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assignors.problem import Flags, Ints

_FAR = 1 << 40
_NONE = -1
_LITTLE_WORK = 100_000
_MOST_WORK = 4_000_000_000  # how often a kind is looked at as what one rack could give another


@dataclass(slots=True, eq=False)
class Transport:
    """Rows are kinds, columns racks. `count` is changed; sums of its rows and columns are not.

    A kind with `room` stands for something that is not a partition: it may be anywhere, no more
    than `room` of it in each rack.
    """

    count: Ints
    held: Ints
    """How many each rack's members have owned so far."""
    is_local: Flags
    room: Ints
    """What may be added to each count before it is full."""


def deal_locally(transport: Transport) -> None:
    """Begin anew where there is much to improve: first what may stay and is local, then what is.

    A good start, which takes one look at each kind; nothing where rings alone are quick.
    """
    count, held, is_local = transport.count, transport.held, transport.is_local
    kinds, racks = count.shape
    if kinds * racks * racks <= _LITTLE_WORK:
        return
    rest, room = count.sum(axis=1).tolist(), count.sum(axis=0).tolist()
    count[:] = 0
    order = np.lexsort((np.arange(kinds), is_local.sum(axis=1))).tolist()
    local = [np.flatnonzero(row).tolist() for row in is_local]
    owned = [np.flatnonzero(row).tolist() for row in held]
    anywhere = range(racks)

    def take(kind: int, rack: int, most: int) -> None:
        amount = min(most, rest[kind], room[rack])
        count[kind, rack] += amount
        rest[kind] -= amount
        room[rack] -= amount

    for kind in order:
        for rack in local[kind]:
            take(kind, rack, int(held[kind, rack]))
    for kind in order:
        for rack in sorted(local[kind], key=lambda rack: -room[rack]):
            take(kind, rack, rest[kind])
    for kind in order:
        for rack in owned[kind] if rest[kind] else ():
            take(kind, rack, max(0, int(held[kind, rack] - count[kind, rack])))
    for kind in order:
        for rack in anywhere if rest[kind] else ():
            take(kind, rack, rest[kind])


def improve(transport: Transport) -> None:
    """Turn rings until none is left that helps, or so much was looked at that it takes too long."""
    kinds, racks = transport.count.shape
    for _ in range(_MOST_WORK // (kinds * racks * racks + 1)):
        if not _turn_rings(transport):
            return


def _turn_rings(transport: Transport) -> bool:
    count, held, racks = transport.count, transport.held, transport.count.shape[1]
    local = transport.is_local * (racks + 2)  # more than all moves of one ring
    giving = np.where(count > 0, local + (count <= held), _FAR)
    taking = np.where(transport.room > 0, -local - (count < held), _FAR)
    kind = np.zeros((racks, racks), dtype=np.int64)
    cost = np.empty((racks, racks), dtype=np.int64)
    for giver in range(racks):
        through = giving[:, giver, None] + taking
        kind[giver] = through.argmin(axis=0)
        cost[giver] = through.min(axis=0)
    np.fill_diagonal(cost, _FAR)
    rings = _find_rings(cost)
    for ring in rings:
        _turn(transport, [(int(kind[giver, taker]), giver, taker) for giver, taker in ring])
    return bool(rings)


def _turn(transport: Transport, steps: list[tuple[int, int, int]]) -> None:
    """As much as can be until a step costs more than it did: (kind, giver, taker) of each."""
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
    """How many can be given before the next costs more."""
    count, held = int(transport.count[kind, rack]), int(transport.held[kind, rack])
    return count - held if count > held else count


def _takeable(transport: Transport, kind: int, rack: int) -> int:
    """How many can be taken before the next saves less."""
    count, held = int(transport.count[kind, rack]), int(transport.held[kind, rack])
    room = int(transport.room[kind, rack])
    return min(room, held - count) if count < held else room


def _find_rings(cost: Ints) -> list[list[tuple[int, int]]]:
    """Rings whose costs sum up to less than 0, no two of which share a rack; none if there is none.

    (giver, taker) of each step. After Bellman and Ford's search any ring of best givers is one.
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
