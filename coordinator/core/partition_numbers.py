"""Dense numbers for the partitions of a group's topics.

State that is kept for each partition lives in arrays indexed by these numbers. They are given
once and never change while the group is in memory: a topic that grows gets a further range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from model.ids import TopicId
from model.records import AssignedTopicPartitions, TopicPartitions


class NumberRange(NamedTuple):
    """Partitions ``first`` to ``first + size - 1`` of a topic have numbers from ``base`` on.

    The topic is the one with index ``topic`` in ``PartitionNumbers.topics``.
    """

    first: int
    base: int
    size: int
    topic: int


class PartitionNumbers:
    """Topic and partition to number, and back.

    Ranges are few and groups may be many, so nothing is kept for each number.
    """

    __slots__ = ("_bases", "_by_topic", "_count", "_ranges", "topic_indexes", "topics")

    def __init__(self) -> None:
        self._by_topic: dict[TopicId, list[NumberRange]] = {}
        self._ranges: list[NumberRange] = []
        self._bases: list[int] = []
        """The first number of each range."""
        self._count = 0
        self.topics: list[TopicId] = []
        self.topic_indexes: dict[TopicId, int] = {}

    def __len__(self) -> int:
        return self._count

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
        found = NumberRange(known, self._count, partitions - known, index)
        self._by_topic.setdefault(topic_id, []).append(found)
        self._ranges.append(found)
        self._bases.append(found.base)
        self._count += found.size

    def _range_of(self, number: int) -> NumberRange:
        return self._ranges[bisect_right(self._bases, number) - 1]

    def topic_index(self, number: int) -> int:
        """The index in ``topics`` of the topic that a number stands for."""
        return self._range_of(number).topic

    def topic_indexes_of(self, numbers: Sequence[int]) -> set[int]:
        """The indexes in ``topics`` of the topics that these numbers (ascending) stand for."""
        return {own.topic for own, _, _ in self._runs(numbers)}

    def _runs(self, numbers: Sequence[int]) -> Iterator[tuple[NumberRange, int, int]]:
        """Of which range ascending numbers are, from which of them on and up to which."""
        begin = 0
        while begin < len(numbers):
            own = self._range_of(numbers[begin])
            end = bisect_left(numbers, own.base + own.size, begin)
            yield own, begin, end
            begin = end

    def numbers_of(self, topic_id: TopicId, partitions: Iterable[int]) -> list[int]:
        """The numbers of partitions that all have one, in the order given."""
        ranges = self._by_topic[topic_id]
        if len(ranges) == 1:
            base = ranges[0].base
            return [base + partition for partition in partitions]
        return [self._number_in(ranges, partition) for partition in partitions]

    @staticmethod
    def _number_in(ranges: list[NumberRange], partition: int) -> int:
        for first, base, size, _ in reversed(ranges):
            if first <= partition < first + size:
                return base + partition - first
        raise KeyError(partition)

    def known_numbers(self, topic_partitions: Iterable[TopicPartitions]) -> set[int]:
        """The numbers of those partitions that have one; others are nobody's and left out."""
        numbers: set[int] = set()
        by_topic = self._by_topic
        # A client may name very many topics that are nobody's here.
        for topic in [topic for topic in topic_partitions if topic.topic_id in by_topic]:
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

    def topic_partitions(self, numbers: Sequence[int]) -> tuple[TopicPartitions, ...]:
        """Numbers (ascending) as topics with ascending partitions."""
        found: dict[int, list[int]] = {}
        for own, begin, end in self._runs(numbers):
            shift = own.base - own.first
            found.setdefault(own.topic, []).extend([n - shift for n in numbers[begin:end]])
        return tuple(
            TopicPartitions(self.topics[index], tuple(own)) for index, own in found.items()
        )

    def assigned_topic_partitions(
        self, epochs: Mapping[int, int]
    ) -> tuple[AssignedTopicPartitions, ...]:
        """Numbers with their assignment epochs as topics with ascending partitions."""
        numbers = sorted(epochs)
        if len(self._ranges) == 1 and numbers:
            # One topic that never grew: each number is its partition.
            epochs_of_all = tuple([epochs[number] for number in numbers])
            return (AssignedTopicPartitions(self.topics[0], tuple(numbers), epochs_of_all),)
        found: dict[int, tuple[list[int], list[int]]] = {}
        for own, begin, end in self._runs(numbers):
            shift = own.base - own.first
            partitions, epochs_of = found.setdefault(own.topic, ([], []))
            partitions.extend([n - shift for n in numbers[begin:end]])
            epochs_of.extend([epochs[n] for n in numbers[begin:end]])
        return tuple(
            AssignedTopicPartitions(self.topics[index], tuple(partitions), tuple(epochs_of))
            for index, (partitions, epochs_of) in found.items()
        )
