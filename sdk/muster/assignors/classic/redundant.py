"""`redundant`: each partition goes to several members, each of which reads all of it.

For applications that keep copies of an index or cache. The members must manage their offsets,
because a group has one committed offset per partition. It is not one of Kafka's assignors, but any
coordinator with client-side assignment passes it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from muster.assignors.classic.claims import find_claims
from muster.assignors.classic.group import GroupAssignment, NumberedGroup
from muster.assignors.problem import Ints


def compute_redundant(group: NumberedGroup, copies: int) -> GroupAssignment:
    """Assign each partition to ``copies`` of its subscribers, or to all if there are fewer.

    Balanced as in KIP-54: no member has two partitions more than another that could have one of
    them. Members keep their partitions unless balance requires a move; a complete and balanced
    assignment does not change.
    """
    copies_of = _Copies.kept(group, copies)
    copies_of.fill()
    copies_of.even_out()
    partition = np.repeat(np.arange(group.partitions), list(map(len, copies_of.holders)))
    member = np.array([m for holders in copies_of.holders for m in sorted(holders)], dtype=np.int64)
    return group.name_assignment(partition, member)


@dataclass(slots=True, eq=False)
class _Copies:
    """The members of each partition during the computation."""

    subscribers: Sequence[Ints]  # topics
    topic_of: Sequence[int]  # partitions
    wanted: Sequence[int]  # topics: the number of members per partition
    holders: list[set[int]]  # partitions
    owners: list[set[int]]  # partitions: the holders that already owned it
    load: Ints  # members

    @staticmethod
    def kept(group: NumberedGroup, copies: int) -> _Copies:
        """Start with what members own and may keep; if too many own it, the newest claims win."""
        subscribers = group.subscribers()
        topic_of = group.topic_of_partition().tolist()
        wanted = [min(copies, len(who)) for who in subscribers]
        may_have = [set(who.tolist()) for who in subscribers]
        holders: list[set[int]] = [set() for _ in topic_of]
        load = np.zeros(len(group.members), dtype=np.int64)
        claims = find_claims(group)
        pairs = zip(claims.partition.tolist(), claims.member.tolist(), strict=True)
        for partition, member in pairs:
            topic = topic_of[partition]
            if member in may_have[topic] and len(holders[partition]) < wanted[topic]:
                holders[partition].add(member)
                load[member] += 1
        owners = [set(who) for who in holders]
        return _Copies(subscribers, topic_of, wanted, holders, owners, load)

    def fill(self) -> None:
        """Assign missing copies to the least loaded subscribers; topics with least choice first."""
        by_topic: dict[int, list[int]] = {}
        for partition, topic in enumerate(self.topic_of):
            by_topic.setdefault(topic, []).append(partition)
        for topic in sorted(by_topic, key=lambda t: (len(self.subscribers[t]), t)):
            waiting = [(int(self.load[m]), m) for m in self.subscribers[topic].tolist()]
            heapify(waiting)
            for partition in by_topic[topic]:
                self._fill_one(partition, self.wanted[topic], waiting)

    def _fill_one(self, partition: int, wanted: int, waiting: list[tuple[int, int]]) -> None:
        holders = self.holders[partition]
        passed_over = []
        while len(holders) < wanted:
            load, member = heappop(waiting)
            if member in holders:
                passed_over.append((load, member))
            else:
                holders.add(member)
                self.load[member] += 1
                passed_over.append((load + 1, member))
        for each in passed_over:
            heappush(waiting, each)

    def even_out(self) -> None:
        """Move copies to members with two fewer, first copies that are new."""
        changed = True
        while changed:
            moved_new = self._move_all(new_alone=True)
            changed = moved_new or self._move_all(new_alone=False)

    def _move_all(self, *, new_alone: bool) -> bool:
        moved = False
        for partition, topic in enumerate(self.topic_of):
            subscribers = self.subscribers[topic]
            lowest = int(self.load[subscribers].min())
            fixed = self.owners[partition] if new_alone else frozenset[int]()
            for giver in sorted(self.holders[partition] - fixed, key=lambda m: -self.load[m]):
                if self.load[giver] - lowest < 2:
                    break
                moved |= self._move(partition, giver, subscribers)
        return moved

    def _move(self, partition: int, giver: int, subscribers: Ints) -> bool:
        holders = self.holders[partition]
        others = [m for m in subscribers.tolist() if m not in holders]
        taker = min(others, key=lambda m: (self.load[m], m), default=giver)
        if self.load[giver] - self.load[taker] < 2:
            return False
        holders.remove(giver)
        holders.add(taker)
        self.load[giver] -= 1
        self.load[taker] += 1
        return True
