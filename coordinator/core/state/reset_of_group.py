"""A reset of a group's offsets, and which of the group's partitions it is about."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.partition_numbers import PartitionNumbers
from model.group_resets import GroupReset
from model.ids import GroupId
from model.log.records import TopicPartitions
from model.log.side_records import GroupResetKey, SideRecord

if TYPE_CHECKING:
    from coordinator.core.state.shard import Shard

_NOTHING: frozenset[int] = frozenset()


class NumbersCache:
    """A cache, not state: the numbers of the partitions of a reset."""

    __slots__ = ("found", "numbers", "ranges_given")

    def __init__(self) -> None:
        self.numbers: PartitionNumbers | None = None
        self.ranges_given = 0
        self.found = _NOTHING

    def find(self, reset: GroupReset, numbers: PartitionNumbers) -> frozenset[int]:
        """The numbers of its partitions; those without one have no owner."""
        if self.numbers is not numbers or self.ranges_given != numbers.ranges_given:
            asked = (
                TopicPartitions(topic.topic_id, tuple(row[0] for row in topic.rows))
                for topic in reset.topics
            )
            self.found = frozenset(numbers.known_numbers(asked))
            self.numbers, self.ranges_given = numbers, numbers.ranges_given
        return self.found


@dataclass(frozen=True, slots=True)
class ResetOfGroup:
    """A reset, and what is cached of it."""

    value: GroupReset
    cache: NumbersCache = field(default_factory=NumbersCache, compare=False, repr=False)

    @property
    def is_set(self) -> bool:
        """Whether the offsets are set."""
        return bool(self.value.set_at_ms)

    def find_numbers(self, group: ConsumerGroup) -> frozenset[int]:
        """The numbers of its partitions in the group."""
        return self.cache.find(self.value, group.numbers)


def compute_withheld(shard: Shard, group: ConsumerGroup) -> Set[int]:
    """The partitions that nobody gets until their offsets are set."""
    resets: Mapping[GroupId, ResetOfGroup] = shard.resets
    reset = resets.get(group.group_id) if resets else None
    return _NOTHING if reset is None or reset.is_set else reset.find_numbers(group)


def compute_reset_end(shard: Shard, group_id: GroupId) -> tuple[SideRecord, ...]:
    """The side record that ends the reset of a group that is removed; none if it has none.

    The next group with its id owes it nothing.
    """
    if group_id not in shard.resets:
        return ()
    return (SideRecord(GroupResetKey(shard.partition, group_id), None),)
