"""A consumer group of KIP-848 and its members. Only ``replay`` modifies it.

Members have dense numbers (slots), and so have partitions (``PartitionNumbers``). Arrays indexed
by partition number hold the slots of the member in the target assignment and of the current owner
(assigned or pending revocation), the assignment epoch, and the last fencing token. Members keep the
numbers of what they own and of their target assignment; everything else is derived.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Set
from enum import Enum
from typing import Final

import numpy as np

from coordinator.core.state.consumer.client_assignor_state import ClientAssignorState
from coordinator.core.state.consumer.consumer_member import (
    INITIAL_EPOCH,
    NO_NUMBERS,
    Member,
    ReservedMembers,
    SubscribedTopicsCache,
)
from coordinator.core.state.consumer.partition_numbers import PartitionNumbers
from model.errors import UnknownMemberId
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.records import ConsumerGroupMemberMetadataValue
from model.topics import TopicImage

NOBODY = -1

LOOK_CHANGES: Final = 16
"""The fewest changes between two searches for topics that no member has partitions of."""

NOTHING_SAID = ConsumerGroupMemberMetadataValue(None, None, "", "", (), "", -1, None)
"""The metadata of a member that has not sent any yet."""


_NO_TOPICS: frozenset[TopicName] = frozenset()


def regex_of(metadata: ConsumerGroupMemberMetadataValue | None) -> str:
    """The member's regular expression; empty for none, which a record has as null or empty."""
    return (metadata.subscribed_topic_regex or "") if metadata is not None else ""


class ConsumerGroupState(Enum):
    """KIP-848's group states, in Kafka's spelling."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """One consumer group."""

    # More than 15 attributes: counters are kept up to date so that no handler scans all members.

    __slots__ = (
        "_free_slots",
        "_look_at",
        "assignment_epoch_of",
        "assignment_timestamp",
        "classic_member_count",
        "classic_protocols",
        "client_assignor_state",
        "entries",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "member_count",
        "metadata_hash",
        "metadata_values",
        "numbers",
        "owner",
        "regex_topics",
        "regexes",
        "reserved",
        "resolved_regexes",
        "revision",
        "server_assignors",
        "slots",
        "static_members",
        "subscribed_names",
        "subscribed_topics_cache",
        "target",
        "target_epoch",
        "token_of",
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
        """Incremented by each replayed record of the group; invalidates what is cached for it."""

        self.entries: dict[MemberId, Member] = {}
        self.member_count = 0
        self.slots: list[Member | None] = []
        self._free_slots: list[int] = []
        self.static_members: dict[InstanceId, MemberId] = {}
        """The current member id of each instance id (``group.instance.id``)."""
        self.reserved = ReservedMembers()
        self.subscribed_names: dict[TopicName, int] = {}
        """The number of members that subscribe to each topic by name."""
        self.regexes: dict[str, int] = {}
        """The number of members that use each regular expression."""
        self.resolved_regexes: dict[str, frozenset[TopicName]] = {}
        """The topics of each resolved regular expression, used by a member or not."""
        self.regex_topics: dict[TopicName, int] = {}
        """The number of used regular expressions that match each topic."""
        self.server_assignors: dict[str, int] = {}
        """The number of members that prefer each server-side assignor."""
        self.classic_member_count = 0
        """The number of members that use the classic protocol."""
        self.classic_protocols: dict[str, int] = {}
        """The number of classic members that support each protocol."""
        self.untargeted: set[int] = set()
        """Slots of members that are in no target assignment yet."""
        self.metadata_values: dict[
            ConsumerGroupMemberMetadataValue, ConsumerGroupMemberMetadataValue
        ] = {}
        """Interns metadata: members with equal metadata share one object."""

        self.client_assignor_state: ClientAssignorState | None = None
        """``None`` while no member has client-side assignors."""

        self.numbers = PartitionNumbers()
        """Replaced by a new object each time unused numbers are freed."""
        self._look_at = LOOK_CHANGES
        self.target: array[int] = array("i")
        self.owner: array[int] = array("i")
        self.assignment_epoch_of: array[int] = array("i")
        self.token_of: array[int] = array("q")
        self.subscribed_topics_cache = SubscribedTopicsCache()

    # --------------------------------------------------------------------------------- queries

    def member(self, member_id: MemberId) -> Member | None:
        """The member with that id, if it counts as one (``Member.is_member``)."""
        entry = self.entries.get(member_id)
        return entry if entry is not None and entry.is_member else None

    def static_member(self, instance_id: InstanceId) -> Member | None:
        """The member with this instance id, if there is one."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def members(self) -> Iterator[Member]:
        """All members, in the order in which they joined."""
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

    def subscribes_to(self, name: TopicName) -> bool:
        """Whether any member subscribes to the topic, by name or by regular expression."""
        return name in self.subscribed_names or name in self.regex_topics

    def subscribed_topic_names(self) -> Set[TopicName]:
        """The topics that members subscribe to, by name or by a resolved regular expression."""
        names = self.subscribed_names.keys()
        return names | self.regex_topics.keys() if self.regex_topics else names

    def is_subscribed(
        self, metadata: ConsumerGroupMemberMetadataValue | None, name: TopicName
    ) -> bool:
        """Whether a member with this metadata subscribes to the topic."""
        if metadata is None:
            return False
        if metadata.subscribed_topic_regex:
            topics = self.resolved_regexes.get(metadata.subscribed_topic_regex)
            if topics is not None and name in topics:
                return True
        return name in metadata.subscribed_topic_names

    def waits_for_regex(self, member: Member) -> bool:
        """Whether the member has a regular expression that is not resolved yet."""
        regex = regex_of(member.metadata)
        return bool(regex) and regex not in self.resolved_regexes

    def topics_of(self, metadata: ConsumerGroupMemberMetadataValue | None) -> Iterable[TopicName]:
        """The topics that a member with this metadata subscribes to, each once."""
        if metadata is None:
            return ()
        names = metadata.subscribed_topic_names
        topics = self.resolved_regexes.get(regex_of(metadata))
        return names if topics is None else topics.union(names)

    def subscribed_topic_indexes(
        self, metadata: ConsumerGroupMemberMetadataValue | None, image: TopicImage
    ) -> frozenset[int]:
        """The indexes (in ``numbers.topics``) of the existing topics of a member's subscription."""
        if metadata is None:
            return frozenset()
        key = (image.version << 20) + len(self.numbers.topics)
        cache = self.subscribed_topics_cache
        if cache.version != key:
            cache.begin(key)
        subscription = metadata.subscribed_topic_names, regex_of(metadata)
        found = cache.found.get(subscription)
        if found is None:
            indexes = self.numbers.topic_indexes
            found = frozenset(
                indexes[topic.topic_id]
                for name in self.topics_of(metadata)
                if (topic := image.by_name.get(name)) is not None and topic.topic_id in indexes
            )
            cache.found[subscription] = found
        return found

    # ------------------------------------------------ changes, for coordinator.core.replay only

    def lengthen(self) -> None:
        """Extend the arrays to the highest partition number."""
        missing = len(self.numbers) - len(self.target)
        if missing > 0:
            nobody = [NOBODY] * missing
            self.target.extend(nobody)
            self.owner.extend(nobody)
            self.assignment_epoch_of.extend(nobody)
            self.token_of.frombytes(bytes(8 * missing))

    def give_numbers_back(self) -> None:
        """Free the numbers of topics that no member owns or has in its target assignment.

        Call this only when a target is complete. Between the tombstones of a static member and the
        records of its replacement no member owns their partitions, and a heartbeat that waits for
        its continuation refers to partitions by number. The search runs after enough changes that
        its cost per change is small.
        """
        if self.revision + len(self.numbers.topics) < self._look_at:
            return
        used = np.zeros(len(self.numbers), np.bool_)
        had: array[int] = array("i")
        for entry in self.entries.values():
            had.extend(entry.assigned)
            had.extend(entry.pending_revocation)
            had.extend(entry.target or NO_NUMBERS)
        if had:
            used[np.frombuffer(had, np.int32)] = True
        kept = self.numbers.without_unused(used)
        if kept is not self.numbers:
            self.numbers = kept
            self.subscribed_topics_cache = SubscribedTopicsCache()
            for each in (self.target, self.owner, self.assignment_epoch_of, self.token_of):
                del each[len(kept) :]
        topics = len(kept.topics)
        self._look_at = self.revision + topics + LOOK_CHANGES + (topics + len(self.entries)) // 4

    def entry(self, member_id: MemberId) -> Member:
        """The entry of that id, created if missing."""
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

    def note_reserved(self, entry: Member) -> None:
        """Keep ``reserved`` after a change of the member's epoch or metadata."""
        if entry.is_reserved and entry.metadata is not None:
            self.reserved.add(entry.member_id, entry.metadata)
        elif self.reserved:
            self.reserved.discard(entry.member_id)

    def drop_entry(self, entry: Member) -> None:
        """Remove an entry, which must own nothing and have no target assignment."""
        del self.entries[entry.member_id]
        self.reserved.discard(entry.member_id)
        self.slots[entry.slot] = None
        self.untargeted.discard(entry.slot)
        self._free_slots.append(entry.slot)

    def release(self, entry: Member, numbers: Iterable[int]) -> None:
        """The member no longer owns these; a partition with another owner by now keeps it."""
        slot, owner = entry.slot, self.owner
        for number in numbers:
            if owner[number] == slot:
                owner[number] = NOBODY

    def clear_target(self, entry: Member) -> None:
        """Remove the member from the target assignment."""
        slot, target = entry.slot, self.target
        for number in entry.target or NO_NUMBERS:
            if target[number] == slot:
                target[number] = NOBODY
        entry.target = None
        if entry.is_member:
            self.untargeted.add(slot)

    def count_assignor(self, name: str | None, by: int) -> None:
        """Add ``by`` to the number of members that prefer the server-side assignor."""
        if name is not None:
            count = self.server_assignors.get(name, 0) + by
            if count > 0:
                self.server_assignors[name] = count
            else:
                self.server_assignors.pop(name, None)

    def count_classic(self, metadata: ConsumerGroupMemberMetadataValue, by: int) -> None:
        """Add ``by`` to the counters of classic members if the metadata is that of one."""
        if metadata.classic_member_metadata is None:
            return
        self.classic_member_count += by
        protocols = metadata.classic_member_metadata.supported_protocols
        for name in {protocol.name for protocol in protocols}:
            count = self.classic_protocols.get(name, 0) + by
            if count > 0:
                self.classic_protocols[name] = count
            else:
                self.classic_protocols.pop(name, None)

    def change_instance(
        self, member_id: MemberId, old: InstanceId | None, new: InstanceId | None
    ) -> None:
        """Map the instance ``new`` to the member, and unmap ``old`` if it is still the member's."""
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

    def count_regex(self, regex: str, by: int) -> frozenset[TopicName]:
        """Add ``by`` to the number of members with the expression.

        Returns the topics that the group starts or stops matching by this expression.
        """
        before = self.regexes.get(regex, 0)
        after = before + by
        if after > 0:
            self.regexes[regex] = after
        else:
            self.regexes.pop(regex, None)
        topics = self.resolved_regexes.get(regex, _NO_TOPICS)
        if (before > 0) == (after > 0):
            return _NO_TOPICS
        self._count_regex_topics(topics, 1 if after > 0 else -1)
        return topics

    def resolve_regex(self, regex: str, topics: frozenset[TopicName] | None) -> Set[TopicName]:
        """Set the topics of a regular expression; ``None`` marks it as unresolved.

        Returns the topics that the group starts or stops matching by this expression.
        """
        before = self.resolved_regexes.get(regex, _NO_TOPICS)
        if topics is None:
            self.resolved_regexes.pop(regex, None)
        else:
            self.resolved_regexes[regex] = topics
        self.subscribed_topics_cache = SubscribedTopicsCache()
        if regex not in self.regexes:
            return _NO_TOPICS
        after = topics or _NO_TOPICS
        self._count_regex_topics(after - before, 1)
        self._count_regex_topics(before - after, -1)
        return before ^ after

    def _count_regex_topics(self, topics: Iterable[TopicName], by: int) -> None:
        counts = self.regex_topics
        for topic in topics:
            count = counts.get(topic, 0) + by
            if count > 0:
                counts[topic] = count
            else:
                counts.pop(topic, None)


def compute_unknown_member(group_id: GroupId, member_id: MemberId | None) -> UnknownMemberId:
    """The error for a member id that is not in the group."""
    return UnknownMemberId(f"Member {member_id} is not a member of group {group_id}.")
