"""Gives partitions that move or are new to members in a replica's rack, if that costs nothing.

KIP-881 includes the sticky assignors. Here balance and stickiness come first: racks only decide
which of the partitions that change hands a member gets.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from muster.assignors.classic.group import NumberedGroup
from muster.assignors.problem import NOBODY, Flags, Members


def prefer_near_members(group: NumberedGroup, owner: Members, target: Members, kind: Flags) -> None:
    """Swap gained partitions of topics with the same subscribers in ``target``.

    Only partitions with the same ``kind`` are swapped. Loads and the number of moves do not change.
    """
    racks = [member.rack or None for member in group.members]
    known = {rack for rack in racks if rack is not None}
    replica_racks = [each for topic in group.replica_racks for each in topic]
    if not any(known & each for each in replica_racks):
        return
    bundle = group.bundle_of_partition()
    alike: dict[tuple[int, bool], list[int]] = {}
    for partition in np.flatnonzero((target != NOBODY) & (target != owner)).tolist():
        alike.setdefault((int(bundle[partition]), bool(kind[partition])), []).append(partition)
    for partitions in alike.values():
        near = {partition: sorted(replica_racks[partition] & known) for partition in partitions}
        _hand_out(near, racks, target)


def _hand_out(near: dict[int, list[str]], racks: list[str | None], target: Members) -> None:
    """Redistribute among the members that gain one; partitions with the least choice come first."""
    waiting: dict[str | None, deque[int]] = {}
    for partition in near:
        member = int(target[partition])
        waiting.setdefault(racks[member], deque()).append(member)
    left = []
    for partition in sorted(near, key=lambda p: (len(near[p]), p)):
        fitting = [waiting[rack] for rack in near[partition] if waiting.get(rack)]
        if fitting:
            target[partition] = max(fitting, key=len).popleft()
        else:
            left.append(partition)
    rest = [member for members in waiting.values() for member in members]
    target[sorted(left)] = rest
