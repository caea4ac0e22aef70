"""Records of a target that are made before it is installed, a slice at a time.

They are made of the group as it was; what has changed by the time of the install is made anew
there, so that an install comes to the same records with them and without. All of them become
state at once, in ``replay_prepared_target``, and are in one batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.consumer_member import Member
from coordinator.core.state.partition_numbers import PartitionNumbers
from model.log.records import Record, TopicPartitions

Slots = npt.NDArray[np.int32]


@dataclass(slots=True, eq=False)
class MadeRecord:
    """A record of type 7 with what it comes to.

    ``numbers`` are those of its partitions in ``given``, ascending, ``None`` where some have none
    yet.
    ``encoded`` is its key and value in the log, where somebody has made them.
    """

    member: Member
    record: Record
    numbers: array[int] | None
    given: PartitionNumbers
    encoded: tuple[bytes, bytes] | None = None


@dataclass(slots=True, eq=False)
class PreparedTarget:
    """``new`` has, for each partition of the problem, its slot as the records have it."""

    new: Slots
    by_slot: dict[int, MadeRecord] = field(default_factory=dict)
    by_record: dict[int, MadeRecord] = field(default_factory=dict)
    """By the identity of the record."""

    def add(self, made: MadeRecord) -> None:
        """One more."""
        self.by_slot[made.member.slot] = made
        self.by_record[id(made.record)] = made

    def find(self, group: ConsumerGroup, slots: list[int], new: Slots) -> dict[int, Record]:
        """The records that still are what these slots get."""
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
    """The numbers of these partitions, ascending; ``None`` where some have none."""
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
    """Each record, with what was made of it, if that can be used at once for all."""
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
