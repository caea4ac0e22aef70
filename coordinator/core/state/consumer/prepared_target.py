"""Records of a target that are built in slices before the target is installed.

They are built from an earlier state of the group. The install rebuilds those that are outdated, so
it writes the same records with and without preparation. All of them are replayed at once, by
``replay_prepared_target``, and written in one batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.consumer.partition_numbers import PartitionNumbers
from model.log.records import Record, TopicPartitions

Slots = npt.NDArray[np.int32]


@dataclass(slots=True, eq=False)
class MadeRecord:
    """A target assignment record (type 7) with data prepared for its replay and its encoding.

    ``numbers`` are the ascending numbers of its partitions in ``given``; ``None`` if some have no
    number yet. ``encoded`` is its key and value in the log format, if already encoded.
    """

    member: Member
    record: Record
    numbers: array[int] | None
    given: PartitionNumbers
    encoded: tuple[bytes, bytes] | None = None


@dataclass(slots=True, eq=False)
class PreparedTarget:
    """The prepared records; ``new`` has the slot of each partition of the problem in them."""

    new: Slots
    by_slot: dict[int, MadeRecord] = field(default_factory=dict)
    by_record: dict[int, MadeRecord] = field(default_factory=dict)
    """By the identity of the record."""

    def add(self, made: MadeRecord) -> None:
        """Add a record."""
        self.by_slot[made.member.slot] = made
        self.by_record[id(made.record)] = made

    def find(self, group: ConsumerGroup, slots: list[int], new: Slots) -> dict[int, Record]:
        """The prepared records of these slots that are still valid for the target ``new``."""
        stale = set(self.new[self.new != new].tolist()) | set(new[self.new != new].tolist())
        found = {}
        for slot in slots:
            made = self.by_slot.get(slot)
            if made is not None and group.slots[slot] is made.member and slot not in stale:
                found[slot] = made.record
        return found


def make_numbers(
    numbers: PartitionNumbers, topics: tuple[TopicPartitions, ...]
) -> array[int] | None:
    """The ascending numbers of these partitions; ``None`` if some have none."""
    given: list[int] = []
    for topic in topics:
        if not topic.partitions or topic.partitions[-1] >= numbers.partitions(topic.topic_id):
            return None
        given += numbers.numbers_of(topic.topic_id, topic.partitions)
    given.sort()
    return array("i", given)


def select_made(
    prepared: PreparedTarget, group: ConsumerGroup, records: tuple[Record, ...]
) -> Iterator[tuple[Record, MadeRecord | None]]:
    """Each record, with its prepared data if that is still valid."""
    known = prepared.by_record
    for record in records:
        made = known.get(id(record))
        if made is not None and (
            made.numbers is None
            or made.given is not group.numbers
            or record.value is None
            or group.slots[made.member.slot] is not made.member
        ):
            made = None
        yield record, made
