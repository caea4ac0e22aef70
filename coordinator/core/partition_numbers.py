"""Dense numbers for the partitions of a group's topics.

State that is kept for each partition lives in arrays indexed by these numbers. They are given
once and never change while the group is in memory: a topic that grows gets a further range.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from model.ids import TopicId
from model.records import AssignedTopicPartitions, TopicPartitions


class NumberRange(NamedTuple):
    """Partitions ``first`` to ``first + size - 1`` of a topic have numbers from ``base`` on."""

    first: int
    base: int
    size: int


class PartitionNumbers:
    """Topic and partition to number, and back."""

    __slots__ = ("_bases", "_by_topic", "topic_index_of", "topic_indexes", "topics")

    def __init__(self) -> None:
        self._by_topic: dict[TopicId, list[NumberRange]] = {}
        self._bases: array[int] = array("i")
        """For each number, the number of partition 0 of its range: number - base = partition."""
        self.topic_index_of: array[int] = array("i")
        """For each number, the index of its topic in ``topics``."""
        self.topics: list[TopicId] = []
        self.topic_indexes: dict[TopicId, int] = {}

    def __len__(self) -> int:
        return len(self.topic_index_of)

    def partitions(self, topic_id: TopicId) -> int:
        """How many partitions of the topic have numbers."""
        ranges = self._by_topic.get(topic_id)
        return ranges[-1].first + ranges[-1].size if ranges else 0

    def ranges(self, topic_id: TopicId) -> list[NumberRange]:
        """The ranges of a topic, ascending; empty if it has none."""
        return self._by_topic.get(topic_id, [])

    def ensure(self, topic_id: TopicId, partitions: int) -> None:
        """Give numbers to partitions 0 to ``partitions - 1`` that have none yet."""
        known = self.partitions(topic_id)
        if partitions <= known:
            return
        index = self.topic_indexes.get(topic_id)
        if index is None:
            index = self.topic_indexes[topic_id] = len(self.topics)
            self.topics.append(topic_id)
        base, count = len(self), partitions - known
        self._by_topic.setdefault(topic_id, []).append(NumberRange(known, base, count))
        self.topic_index_of.extend([index] * count)
        self._bases.extend([base - known] * count)

    def numbers_of(self, topic_id: TopicId, partitions: Iterable[int]) -> list[int]:
        """The numbers of partitions that all have one, in the order given."""
        ranges = self._by_topic[topic_id]
        if len(ranges) == 1:
            base = ranges[0].base
            return [base + partition for partition in partitions]
        return [self._number_in(ranges, partition) for partition in partitions]

    @staticmethod
    def _number_in(ranges: list[NumberRange], partition: int) -> int:
        for first, base, size in reversed(ranges):
            if first <= partition < first + size:
                return base + partition - first
        raise KeyError(partition)

    def known_numbers(self, topic_partitions: Iterable[TopicPartitions]) -> set[int]:
        """The numbers of those partitions that have one; others are nobody's and left out."""
        numbers: set[int] = set()
        for topic in topic_partitions:
            limit = self.partitions(topic.topic_id)
            known = [p for p in topic.partitions if 0 <= p < limit]
            if known:
                numbers.update(self.numbers_of(topic.topic_id, known))
        return numbers

    def has_all(self, topic_partitions: Iterable[TopicPartitions]) -> bool:
        """Whether every partition has a number."""
        return all(
            min(topic.partitions) >= 0 and max(topic.partitions) < self.partitions(topic.topic_id)
            for topic in topic_partitions
            if topic.partitions
        )

    def _by_topic_of(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        index_of = self.topic_index_of
        for number in numbers:
            index = index_of[number]
            if index in found:
                found[index].append(number)
            else:
                found[index] = [number]
        return found

    def topic_partitions(self, numbers: Iterable[int]) -> tuple[TopicPartitions, ...]:
        """Numbers (ascending) as topics with ascending partitions."""
        bases, topics = self._bases, self.topics
        return tuple(
            TopicPartitions(topics[index], tuple([number - bases[number] for number in own]))
            for index, own in self._by_topic_of(numbers).items()
        )

    def assigned_topic_partitions(
        self, epochs: Mapping[int, int]
    ) -> tuple[AssignedTopicPartitions, ...]:
        """Numbers with their assignment epochs as topics with ascending partitions."""
        bases, topics = self._bases, self.topics
        return tuple(
            AssignedTopicPartitions(
                topics[index],
                tuple([number - bases[number] for number in own]),
                tuple([epochs[number] for number in own]),
            )
            for index, own in self._by_topic_of(sorted(epochs)).items()
        )
