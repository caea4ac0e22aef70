"""Gives partitions that move back to their former owners.

A member that was away rejoins with partitions of an older generation, which by then have other
owners. Balance alone decides how many partitions those give up, but not which: the partitions that
the rejoining member had are as good as any, and it may still have their state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.classic.claims import Claims
from muster.assignors.classic.group import NumberedGroup
from muster.assignors.problem import NOBODY, Ints, Members


def prefer_former_owners(group: NumberedGroup, claims: Claims, target: Members) -> None:
    """Swap partitions of topics with the same subscribers in ``target``; loads do not change.

    A swap never takes a partition from its owner unless the owner gets back one of its others.
    """
    unmet = claims.member != target[claims.partition]
    unmet &= claims.member != claims.owner[claims.partition]
    if not unmet.any():
        return
    swap = _Swaps.prepare(group, claims, target)
    wanted = zip(claims.partition[unmet].tolist(), claims.member[unmet].tolist(), strict=True)
    for partition, member in wanted:
        swap.try_to_give(partition, member)


@dataclass(slots=True, eq=False)
class _Swaps:
    owner: Members
    target: Members
    bundle: Ints  # partitions: equal for topics with the same subscribers
    claimed: set[tuple[int, int]]  # (partition, member)
    gained: dict[tuple[int, int], list[int]]
    """Per bundle and member, the partitions that it gains."""

    @staticmethod
    def prepare(group: NumberedGroup, claims: Claims, target: Members) -> _Swaps:
        bundle = group.bundle_of_partition()
        claimed = set(zip(claims.partition.tolist(), claims.member.tolist(), strict=True))
        gained: dict[tuple[int, int], list[int]] = {}
        for partition in np.flatnonzero((target != NOBODY) & (target != claims.owner)).tolist():
            key = int(bundle[partition]), int(target[partition])
            gained.setdefault(key, []).append(partition)
        return _Swaps(claims.owner, target, bundle, claimed, gained)

    def try_to_give(self, partition: int, member: int) -> None:
        """Give the member this partition in exchange for another that it would gain."""
        holder = int(self.target[partition])
        keeps = holder == self.owner[partition]
        if holder in (NOBODY, member) or (not keeps and (partition, holder) in self.claimed):
            return
        for offer in self.gained.get((int(self.bundle[partition]), member), ()):
            returns = self.owner[offer] == holder
            if (offer, member) not in self.claimed and (returns or not keeps):
                self._swap(partition, offer, keeps=keeps, returns=bool(returns))
                return

    def _swap(self, partition: int, offer: int, *, keeps: bool, returns: bool) -> None:
        bundle = int(self.bundle[partition])
        holder, member = int(self.target[partition]), int(self.target[offer])
        self.target[partition], self.target[offer] = member, holder
        theirs = self.gained[bundle, member]
        theirs[theirs.index(offer)] = partition
        if not keeps:
            self.gained[bundle, holder].remove(partition)
        if not returns:
            self.gained.setdefault((bundle, holder), []).append(offer)
