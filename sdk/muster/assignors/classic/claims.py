"""The partitions that members claim to own, and which claims hold.

A member that was away may claim partitions that have had other owners since (KIP-341). Of several
claims to a partition the one with the highest generation wins. If several members claim it in that
generation, it has no owner: one of them is mistaken, and nothing tells which. A claim of an older
generation holds if no newer one exists.

Source: KIP-341, and Kafka's AbstractStickyAssignor (in org.apache.kafka.clients.consumer).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.classic.group import NumberedGroup
from muster.assignors.problem import NOBODY, Flags, Ints, Members


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """All claims, sorted by partition, then newest generation, then member."""

    partition: Ints
    member: Ints
    owner: Members  # partitions: the accepted owner, or NOBODY

    def is_claimed(self) -> Flags:
        """Per partition, whether any member claims it."""
        claimed = np.zeros(len(self.owner), dtype=np.bool_)
        claimed[self.partition] = True
        return claimed

    def by_others_than(self, holder: Members) -> Ints:
        """The partitions claimed by a member other than their ``holder``."""
        contested: Ints = self.partition[self.member != holder[self.partition]]
        return contested


def find_claims(group: NumberedGroup) -> Claims:
    """Collect the claims of existing partitions and resolve their owners."""
    partition, member = _list_claims(group)
    claim = np.unique(partition * max(len(group.members), 1) + member)
    partition, member = np.divmod(claim, max(len(group.members), 1))
    generation = np.array([each.generation for each in group.members], dtype=np.int64)[member]
    order = np.lexsort((-generation, partition))
    partition, member, generation = partition[order], member[order], generation[order]

    owner = np.full(group.partitions, NOBODY, dtype=np.int32)
    is_first = np.diff(partition, prepend=-1) > 0
    owner[partition[is_first]] = member[is_first]
    is_disputed = is_first[:-1] & ~is_first[1:] & (generation[1:] == generation[:-1])
    owner[partition[:-1][is_disputed]] = NOBODY
    return Claims(partition, member, owner)


def _list_claims(group: NumberedGroup) -> tuple[Ints, Ints]:
    """(partition, member) of each claim, in no particular order."""
    number = {topic: t for t, topic in enumerate(group.topics)}
    start, count = group.topic_start.tolist(), np.diff(group.topic_start).tolist()
    partition: list[int] = []
    claims_of: list[int] = []
    for member in group.members:
        before = len(partition)
        for topic, claimed in member.owned.items():
            t = number.get(topic)
            if t is not None:
                first, end = start[t], count[t]
                partition += [first + p for p in claimed if 0 <= p < end]
        claims_of.append(len(partition) - before)
    claimer = np.repeat(np.arange(len(group.members)), np.array(claims_of, dtype=np.int64))
    return np.array(partition, dtype=np.int64), claimer
