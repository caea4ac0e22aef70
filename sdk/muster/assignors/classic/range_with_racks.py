"""Rack-aware `range` (KIP-881).

Each member gets as many partitions of each topic as without racks, but first those that have a
replica in its rack. Topics with equal partition counts and the same subscribers stay co-partitioned
if all of them have a replica of the partition in a matching rack.

Source: KIP-881, and Kafka's RangeAssignor (in org.apache.kafka.clients.consumer).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from muster.assignors.classic.group import NumberedGroup
from muster.assignors.problem import NOBODY, Members

_Racks = Sequence[frozenset[str]]


@dataclass(slots=True, eq=False)
class _Topic:
    """A topic during its assignment. Members are positions in `consumers`."""

    consumers: tuple[int, ...]
    consumer_racks: tuple[str | None, ...]
    replica_racks: _Racks
    holder: list[int]  # partitions: a position in consumers, NOBODY while unassigned
    has: list[int]  # consumers: partitions so far
    fewest: int
    longer: int  # how many more consumers may get one above the fewest

    @staticmethod
    def unassigned(
        consumers: tuple[int, ...], consumer_racks: tuple[str | None, ...], racks: _Racks
    ) -> _Topic:
        fewest, longer = divmod(len(racks), len(consumers))
        holder = [NOBODY] * len(racks)
        return _Topic(
            consumers, consumer_racks, racks, holder, [0] * len(consumers), fewest, longer
        )

    def needs_racks(self) -> bool:
        """Whether racks distinguish between its partitions."""
        of_consumers = {rack for rack in self.consumer_racks if rack is not None}
        of_replicas = frozenset().union(*self.replica_racks)
        if not of_consumers & of_replicas:
            return False
        return any(racks != of_replicas for racks in self.replica_racks)

    def room(self, consumer: int) -> int:
        """How many more partitions the consumer may get."""
        return self.fewest + (self.longer > 0) - self.has[consumer]

    def assign(self, consumer: int, partition: int) -> None:
        self.holder[partition] = consumer
        self.has[consumer] += 1
        if self.has[consumer] > self.fewest:
            self.longer -= 1

    def assign_ranges(self, of_rack: dict[str | None, Iterator[int]]) -> None:
        """Fill each consumer up with the partitions listed for its rack."""
        for consumer, rack in enumerate(self.consumer_racks):
            room = self.room(consumer)
            while room > 0:
                partition = self._next_unassigned(of_rack[rack])
                if partition == NOBODY:
                    break
                self.assign(consumer, partition)
                room -= 1

    def _next_unassigned(self, partitions: Iterable[int]) -> int:
        for partition in partitions:
            if self.holder[partition] == NOBODY:
                return partition
        return NOBODY

    def assign_matching(self) -> None:
        """Assign partitions that have a replica in the consumer's rack."""
        self.assign_ranges({rack: self._matching(rack) for rack in set(self.consumer_racks)})

    def _matching(self, rack: str | None) -> Iterator[int]:
        return iter(
            [p for p, racks in enumerate(self.replica_racks) if rack is None or rack in racks]
        )

    def assign_rest(self) -> None:
        rest = iter(range(len(self.holder)))
        self.assign_ranges(dict.fromkeys(self.consumer_racks, rest))


def assign_range_with_racks(group: NumberedGroup) -> Members | None:
    """The member of each partition; ``None`` if racks make no difference."""
    topics = _make_topics(group)
    if not any(topic.needs_racks() for topic in topics):
        return None
    alike: dict[tuple[object, ...], list[_Topic]] = {}
    for topic in topics:
        has_racks = any(rack is not None for rack in topic.consumer_racks)
        key = (topic.consumers, has_racks and len(topic.holder))
        alike.setdefault(key, []).append(topic)
    for same in alike.values():
        if len(same) == 1:
            if same[0].needs_racks():
                same[0].assign_matching()
        elif any(rack is not None for rack in same[0].consumer_racks):
            _assign_matching_together(same)
    target = np.full(group.partitions, NOBODY, dtype=np.int32)
    for topic, start in zip(topics, group.topic_start.tolist(), strict=False):
        topic.assign_rest()
        end = start + len(topic.holder)
        target[start:end] = np.array(topic.consumers, dtype=np.int32)[topic.holder]
    return target


def _make_topics(group: NumberedGroup) -> list[_Topic]:
    racks = [member.rack or None for member in group.members]
    topics = []
    for subscribers, replica_racks in zip(group.subscribers(), group.replica_racks, strict=True):
        consumers = tuple(subscribers.tolist())
        consumer_racks = tuple(racks[member] for member in consumers)
        topics.append(_Topic.unassigned(consumers, consumer_racks, replica_racks))
    return topics


def _assign_matching_together(topics: list[_Topic]) -> None:
    """Give each partition number of all topics to one consumer in a matching rack, if there is one.

    The topics have equal counts and consumers, so a consumer has the same capacity in each of them,
    and once it is full it stays full.
    """
    first = topics[0]
    waiting: dict[str | None, deque[int]] = {}
    for consumer, rack in enumerate(first.consumer_racks):
        waiting.setdefault(rack, deque()).append(consumer)
    for partition in range(len(first.holder)):
        suitable = frozenset.intersection(*(topic.replica_racks[partition] for topic in topics))
        fronts = []
        for rack, consumers in waiting.items():
            while consumers and first.room(consumers[0]) <= 0:
                consumers.popleft()
            if consumers and (rack is None or rack in suitable):
                fronts.append(consumers[0])
        if fronts:
            for topic in topics:
                topic.assign(min(fronts), partition)
