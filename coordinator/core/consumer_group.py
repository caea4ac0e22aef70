"""A consumer group of KIP-848 and its members: state, changed by ``replay`` alone.

Members are numbered densely (slots); partitions too (``PartitionNumbers``). For each partition
number there is the slot of the member that the target gives it to, of the member that holds it
(assigned or pending revocation), and the epoch at which that member got it. A member keeps the
numbers that it holds and that the target gives it; everything else is derived.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from enum import Enum

from coordinator.core.partition_numbers import PartitionNumbers
from model.ids import GroupId, InstanceId, MemberId, TopicId, TopicName
from model.records import ConsumerGroupMemberMetadataValue, MemberState
from model.topics import TopicImage

INITIAL_EPOCH = 1
"""Epochs of a group of which no epoch record was written yet; its first member gets 2."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""Of a static member that has left and is expected back."""
NOBODY = -1

NO_NUMBERS: array[int] = array("i")
"""Shared by all members that hold nothing; never changed."""


class ConsumerGroupState(Enum):
    """KIP-848's group states, in Kafka's spelling."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Member:
    """A member, or what is known of one whose other records were compacted away."""

    __slots__ = (
        "assigned",
        "has_current",
        "member_epoch",
        "member_id",
        "metadata",
        "pending_revocation",
        "previous_member_epoch",
        "slot",
        "state",
        "target",
    )

    def __init__(self, member_id: MemberId, slot: int) -> None:
        self.member_id = member_id
        self.slot = slot
        self.metadata: ConsumerGroupMemberMetadataValue | None = None
        self.has_current = False
        self.member_epoch = JOIN_EPOCH
        self.previous_member_epoch = -1
        self.state = MemberState.STABLE
        self.assigned = NO_NUMBERS
        self.pending_revocation = NO_NUMBERS
        self.target: array[int] | None = None
        """The numbers that the target gives it; ``None`` before a target named the member."""

    @property
    def is_member(self) -> bool:
        """Whether it counts: a target alone does not make a member (Kafka replays likewise)."""
        return self.metadata is not None or self.has_current

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has nothing to do on the way to the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


class ConsumerGroup:
    """One consumer group."""

    __slots__ = (
        "_free_slots",
        "assignment_epoch_of",
        "assignment_timestamp",
        "entries",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "holder",
        "member_count",
        "metadata_hash",
        "metadata_values",
        "numbers",
        "revision",
        "server_assignors",
        "slots",
        "static_members",
        "subscribed_names",
        "subscribed_topics_cache",
        "target",
        "target_epoch",
        "untargeted",
    )

    def __init__(self, group_id: GroupId) -> None:
        self.group_id = group_id
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.target_epoch = INITIAL_EPOCH
        self.assignment_timestamp = 0
        self.has_partition_metadata = False
        self.revision = 0
        """Grows with everything replayed for the group; what is cached for it dies by it."""

        self.entries: dict[MemberId, Member] = {}
        self.member_count = 0
        self.slots: list[Member | None] = []
        self._free_slots: list[int] = []
        self.static_members: dict[InstanceId, MemberId] = {}
        """Who is each instance (``group.instance.id``) now."""
        self.subscribed_names: dict[TopicName, int] = {}
        """How many members subscribe to each name."""
        self.server_assignors: dict[str, int] = {}
        """How many members prefer each server assignor."""
        self.untargeted: set[int] = set()
        """Slots of members that no target has named yet."""
        self.metadata_values: dict[
            ConsumerGroupMemberMetadataValue, ConsumerGroupMemberMetadataValue
        ] = {}
        """Equal metadata of many members is kept once."""

        self.numbers = PartitionNumbers()
        self.target: array[int] = array("i")
        self.holder: array[int] = array("i")
        self.assignment_epoch_of: array[int] = array("i")
        self.subscribed_topics_cache: tuple[int, dict[tuple[TopicName, ...], frozenset[int]]] = (
            -1,
            {},
        )

    # ------------------------------------------------------------------------------- questions

    def member(self, member_id: MemberId) -> Member | None:
        """The member of that id, if it is one."""
        entry = self.entries.get(member_id)
        return entry if entry is not None and entry.is_member else None

    def static_member(self, instance_id: InstanceId) -> Member | None:
        """The member that is this instance, if there is one."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def members(self) -> Iterator[Member]:
        """All members, in the order in which they came."""
        return (entry for entry in self.entries.values() if entry.is_member)

    def state(self) -> ConsumerGroupState:
        """Empty, Assigning, Reconciling or Stable (Kafka's ``maybeUpdateGroupState``)."""
        if self.member_count == 0:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def subscribed_topic_indexes(
        self, names: tuple[TopicName, ...], image: TopicImage
    ) -> frozenset[int]:
        """Indexes (of ``numbers.topics``) of the topics that these names stand for now."""
        key = (image.version << 20) + len(self.numbers.topics)
        version, known = self.subscribed_topics_cache
        if version != key:
            known = {}
            self.subscribed_topics_cache = (key, known)
        found = known.get(names)
        if found is None:
            indexes = self.numbers.topic_indexes
            found = frozenset(
                indexes[topic.topic_id]
                for name in names
                if (topic := image.by_name.get(name)) is not None and topic.topic_id in indexes
            )
            known[names] = found
        return found

    # ------------------------------------------------- changes, for coordinator.core.replay only

    def ensure_numbers(self, topic_id: TopicId, partitions: int) -> None:
        """Number the partitions of a topic up to that count, and lengthen the arrays."""
        self.numbers.ensure(topic_id, partitions)
        missing = len(self.numbers) - len(self.target)
        if missing > 0:
            nobody = [NOBODY] * missing
            self.target.extend(nobody)
            self.holder.extend(nobody)
            self.assignment_epoch_of.extend(nobody)

    def entry(self, member_id: MemberId) -> Member:
        """The entry of that id, made if there is none."""
        entry = self.entries.get(member_id)
        if entry is None:
            slot = self._free_slots.pop() if self._free_slots else len(self.slots)
            entry = Member(member_id, slot)
            if slot == len(self.slots):
                self.slots.append(entry)
            else:
                self.slots[slot] = entry
            self.entries[member_id] = entry
        return entry

    def drop_entry(self, entry: Member) -> None:
        """Forget an entry that holds nothing and has no target any more."""
        del self.entries[entry.member_id]
        self.slots[entry.slot] = None
        self.untargeted.discard(entry.slot)
        self._free_slots.append(entry.slot)

    def release(self, entry: Member, numbers: Iterable[int]) -> None:
        """The member holds these no longer; a partition that another one took is left alone."""
        slot, holder = entry.slot, self.holder
        for number in numbers:
            if holder[number] == slot:
                holder[number] = NOBODY

    def clear_target(self, entry: Member) -> None:
        """The target gives the member nothing any more."""
        slot, target = entry.slot, self.target
        for number in entry.target or NO_NUMBERS:
            if target[number] == slot:
                target[number] = NOBODY
        entry.target = None
        if entry.is_member:
            self.untargeted.add(slot)

    def count_assignor(self, name: str | None, by: int) -> None:
        """Add ``by`` to the number of members that prefer the assignor."""
        if name is not None:
            count = self.server_assignors.get(name, 0) + by
            if count > 0:
                self.server_assignors[name] = count
            else:
                self.server_assignors.pop(name, None)

    def change_instance(
        self, member_id: MemberId, old: InstanceId | None, new: InstanceId | None
    ) -> None:
        """The member is the instance ``new``, and was ``old`` unless another one is by now."""
        if old is not None and old != new and self.static_members.get(old) == member_id:
            del self.static_members[old]
        if new is not None:
            self.static_members[new] = member_id

    def count_names(self, names: Iterable[TopicName], by: int) -> None:
        """Add ``by`` to the number of subscribers of each name."""
        counts = self.subscribed_names
        for name in names:
            count = counts.get(name, 0) + by
            if count > 0:
                counts[name] = count
            else:
                counts.pop(name, None)
