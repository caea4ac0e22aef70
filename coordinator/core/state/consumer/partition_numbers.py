"""Dense numbers for the partitions of a group's topics.

State of each partition is in arrays indexed by these numbers. The numbers of a topic do not change
while a member owns or targets one of its partitions: a topic that grows gets another range. The
numbers of a topic that no member has any more are reused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from model.ids import TopicId
from model.log.records import AssignedTopicPartitions, TopicPartitions


class NumberRange(NamedTuple):
    """Partitions ``first`` to ``first + size - 1`` of a topic have numbers from ``base`` on.

    ``topic`` is the index of the topic in ``PartitionNumbers.topics``.
    """

    first: int
    base: int
    size: int
    topic: int


class PartitionNumbers:
    """Maps topic and partition to number, and back.

    It stores ranges only, nothing for each number: there may be many groups.
    """

    __slots__ = ("_bases", "_by_topic", "_count", "_gaps", "_ranges", "topic_indexes", "topics")

    def __init__(self) -> None:
        self._by_topic: dict[TopicId, list[NumberRange]] = {}
        self._ranges: list[NumberRange] = []
        self._bases: list[int] = []
        """The first number of each range."""
        self._gaps: list[tuple[int, int]] = []
        """Unused numbers: the first one, and their count."""
        self._count = 0
        self.topics: list[TopicId] = []
        self.topic_indexes: dict[TopicId, int] = {}

    def __len__(self) -> int:
        """One more than the highest number."""
        return self._count

    @property
    def ranges_given(self) -> int:
        """How many ranges there are: another number whenever a partition has got one.

        ``len`` does not tell, since a new topic may get numbers that were given back.
        """
        return len(self._ranges)

    def partitions(self, topic_id: TopicId) -> int:
        """How many partitions of the topic have numbers."""
        ranges = self._by_topic.get(topic_id)
        return ranges[-1].first + ranges[-1].size if ranges else 0

    def ranges(self, topic_id: TopicId) -> list[NumberRange]:
        """The ranges of a topic, ascending; empty if it has none."""
        return self._by_topic.get(topic_id, [])

    def ensure(self, topic_id: TopicId, partitions: int) -> None:
        """Number those of the partitions 0 to ``partitions - 1`` that have no number yet."""
        known = self.partitions(topic_id)
        if partitions <= known:
            return
        size = partitions - known
        # The ranges of one topic must ascend, so only a new topic can use a gap.
        base = self._count if known else self._take_gap(size)
        self._add(topic_id, known, base, size)

    def _take_gap(self, size: int) -> int:
        """The first of ``size`` consecutive unused numbers.

        Gaps that are too small are dropped; ``without_unused`` finds them again.
        """
        while self._gaps:
            base, room = self._gaps.pop()
            if room > size:
                self._gaps.append((base + size, room - size))
            if room >= size:
                return base
        return self._count

    def _add(self, topic_id: TopicId, first: int, base: int, size: int) -> None:
        index = self.topic_indexes.get(topic_id)
        if index is None:
            index = self.topic_indexes[topic_id] = len(self.topics)
            self.topics.append(topic_id)
        added = NumberRange(first, base, size, index)
        self._by_topic.setdefault(topic_id, []).append(added)
        place = bisect_left(self._bases, base)
        self._ranges.insert(place, added)
        self._bases.insert(place, base)
        self._count = max(self._count, base + size)

    def without_unused(self, used: npt.NDArray[np.bool_]) -> PartitionNumbers:
        """A copy without the topics that have no used number; ``self`` if there are none.

        This object stays unchanged for its other readers.
        """
        if not self._ranges:
            return self
        is_used = np.logical_or.reduceat(used, self._bases).tolist()
        topics = {own.topic for own, is_one in zip(self._ranges, is_used, strict=True) if is_one}
        if len(topics) == len(self.topics):
            return self
        kept = PartitionNumbers()
        for first, base, size, topic in self._ranges:
            if topic in topics:
                if base > kept._count:
                    kept._gaps.append((kept._count, base - kept._count))
                kept._add(self.topics[topic], first, base, size)
        return kept

    def _range_of(self, number: int) -> NumberRange:
        return self._ranges[bisect_right(self._bases, number) - 1]

    def topic_index(self, number: int) -> int:
        """The index in ``topics`` of the topic of a number."""
        return self._range_of(number).topic

    def topic_indexes_of(self, numbers: Sequence[int]) -> set[int]:
        """The indexes in ``topics`` of the topics of these ascending numbers."""
        return {own.topic for own, _, _ in self._runs(numbers)}

    def _runs(self, numbers: Sequence[int]) -> Iterator[tuple[NumberRange, int, int]]:
        """Split ascending numbers by range: the range, and the slice of ``numbers`` in it.

        Raises ``KeyError`` for a number that no partition has.
        """
        begin = 0
        while begin < len(numbers):
            own = self._range_of(numbers[begin])
            end = bisect_left(numbers, own.base + own.size, begin)
            if end == begin:
                raise KeyError(numbers[begin])
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
        """The numbers of these partitions; partitions without a number have no owner: skip them."""
        numbers: set[int] = set()
        by_topic = self._by_topic
        # A client may name very many topics that no member has.
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

    def tokens_of(
        self, numbers: Sequence[int], token_of: Sequence[int] | Mapping[int, int]
    ) -> tuple[tuple[int, ...], ...]:
        """The tokens of numbers (ascending), in the order of ``topic_partitions``."""
        found: dict[int, list[int]] = {}
        for own, begin, end in self._runs(numbers):
            found.setdefault(own.topic, []).extend([token_of[n] for n in numbers[begin:end]])
        return tuple(map(tuple, found.values()))

    def assigned_topic_partitions(
        self, epochs: Mapping[int, int]
    ) -> tuple[AssignedTopicPartitions, ...]:
        """Numbers with their assignment epochs as topics with ascending partitions."""
        numbers = sorted(epochs)
        if len(self._ranges) == 1 and not self._bases[0] and numbers:
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
