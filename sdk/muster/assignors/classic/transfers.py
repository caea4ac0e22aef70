"""Evens out loads while partitions change owners under `cooperative-sticky`.

Of the partitions that a member gains, those without an owner come at once, those of another owner
one round later. Members of topics with the same subscribers can exchange one kind for the other,
which decides how even the loads are until the next round.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from muster.assignors.classic.claims import Claims
from muster.assignors.classic.group import NumberedGroup
from muster.assignors.problem import NOBODY, Flags, Ints, Members


def spread_what_is_free(group: NumberedGroup, claims: Claims, target: Members) -> None:
    """Swap partitions in ``target`` so that unowned ones go to the least loaded members.

    Loads in the target and the number of moves do not change.
    """
    gained = np.flatnonzero((target != NOBODY) & (target != claims.owner))
    is_claimed = claims.is_claimed()
    if is_claimed[gained].all() or not is_claimed[gained].any():
        return
    load = np.bincount(target[target != NOBODY], minlength=len(group.members))
    load -= np.bincount(target[gained], minlength=len(group.members))
    bundles = _collect_bundles(group, target, gained, is_claimed)
    loads: list[int] = load.tolist()
    for bundle in bundles:
        bundle.deal(loads)
    changed = True
    while changed:
        changed = sum(bundle.even_out(loads) for bundle in bundles) > 0
    for bundle in bundles:
        bundle.write(target)


@dataclass(slots=True, eq=False)
class _Bundle:
    """Topics with the same subscribers: their gained partitions, and who gains how many."""

    free: list[int]
    claimed: list[int]
    room: dict[int, int]  # members: how many they still gain
    dealt: dict[int, int]  # members: how many unowned ones they gain

    def deal(self, loads: list[int]) -> None:
        waiting = [(loads[member], member) for member in self.room]
        heapify(waiting)
        for _ in self.free:
            _, member = heappop(waiting)
            self._give(member, loads, 1)
            if self.room[member]:
                heappush(waiting, (loads[member], member))

    def even_out(self, loads: list[int]) -> bool:
        """Move unowned ones to members with two fewer. Whether any moved."""
        changed = False
        while True:
            giver = max((m for m, n in self.dealt.items() if n), key=lambda m: (loads[m], -m))
            with_room = (m for m, n in self.room.items() if n)
            taker = min(with_room, key=lambda m: (loads[m], m), default=giver)
            if loads[giver] - loads[taker] < 2:
                return changed
            self._give(giver, loads, -1)
            self._give(taker, loads, 1)
            changed = True

    def _give(self, member: int, loads: list[int], count: int) -> None:
        loads[member] += count
        self.dealt[member] += count
        self.room[member] -= count

    def write(self, target: Members) -> None:
        target[self.free] = [member for member, count in self.dealt.items() for _ in range(count)]
        target[self.claimed] = [member for member, count in self.room.items() for _ in range(count)]


def _collect_bundles(
    group: NumberedGroup,
    target: Members,
    gained: Ints,
    is_claimed: Flags,
) -> list[_Bundle]:
    """The bundles with unowned partitions, those with the fewest receivers first."""
    bundles: dict[int, _Bundle] = {}
    of_partition = group.bundle_of_partition()
    for partition in gained.tolist():
        bundle = bundles.setdefault(int(of_partition[partition]), _Bundle([], [], {}, {}))
        (bundle.claimed if is_claimed[partition] else bundle.free).append(partition)
        member = int(target[partition])
        bundle.room[member] = bundle.room.get(member, 0) + 1
        bundle.dealt[member] = 0
    return sorted((b for b in bundles.values() if b.free), key=lambda b: len(b.room))
