"""The `uniform` assignor for members that all subscribe to every topic.

Source: org.apache.kafka.coordinator.group.assignor.UniformHomogeneousAssignmentBuilder of Kafka
4.3. Unlike there, the odd partitions do not depend on an iteration order: members that have them
keep them, so that a balanced assignment never changes (KAFKA-18688).
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, Ints, Members
from muster.assignors.shares.count_placement import deal_in_turns, find_excess, order_by_level
from muster.assignors.shares.leveling import pour


def assign_homogeneous(members: int, owner: Members, fixed: Ints | None = None) -> Members:
    """The member of each partition: counts differ by at most one, with as few moves as possible.

    `fixed` is each member's number of other partitions, which count towards balance.
    """
    if members == 0:
        return np.full_like(owner, NOBODY)
    if fixed is not None and fixed.any():
        return _assign_beside(members, owner, fixed)
    if owner.max(initial=NOBODY) == NOBODY:
        nothing = np.zeros(members, dtype=np.int64)
        return order_by_level(nothing, compute_quotas(nothing, len(owner)))
    owner_plus_one = owner.astype(np.int64)
    owner_plus_one += 1
    held = np.bincount(owner_plus_one, minlength=members + 1)[1:]
    quota = compute_quotas(held, len(owner))
    target = owner.copy()
    target[find_excess(owner_plus_one, held, quota)] = NOBODY
    target[target == NOBODY] = order_by_level(held, quota)
    return target


def _assign_beside(members: int, owner: Members, fixed: Ints) -> Members:
    owner_plus_one = owner.astype(np.int64) + 1
    held = np.bincount(owner_plus_one, minlength=members + 1)[1:]
    quota = pour(fixed, len(owner), first=held)
    target = owner.copy()
    target[find_excess(owner_plus_one, held, quota)] = NOBODY
    target[target == NOBODY] = deal_in_turns(fixed + np.minimum(held, quota), fixed + quota)
    return target


def compute_quotas(held: Ints, partitions: int) -> Ints:
    """How many partitions each member is to have, given how many it owns.

    Of the quotas that differ by at most one, these move the fewest partitions.
    """
    base, odd = divmod(partitions, len(held))
    quota = np.full_like(held, base)
    above = held > base
    keeps_odd = np.flatnonzero(above)[:odd]
    gets_odd = np.flatnonzero(~above)[: odd - len(keeps_odd)]
    quota[keeps_odd] += 1
    quota[gets_odd] += 1
    return quota
