"""A second, naive replay of the log by names, and the live state described in the same form.

It shares no code with ``coordinator.core.replay.group_records``: dictionaries of names, no numbers,
no caches. The checkers read it and compare it with the live state (S13).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coordinator.core.state.classic.classic_group import compute_classic_group
from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.shard import Shard
from model.ids import GroupId, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    Record,
    TopicPartitions,
)
from tests.support.shadow_foreign import ShadowForeign, describe_foreign

Place = tuple[TopicId, int]
Description = dict[str, Any]


@dataclass
class Current:
    """A member's current assignment: partitions with their assignment epochs."""

    epoch: int
    previous: int
    state: int
    assigned: dict[Place, int] = field(default_factory=dict)
    pending: dict[Place, int] = field(default_factory=dict)

    def held(self) -> set[Place]:
        """The partitions assigned or pending revocation."""
        return {*self.assigned, *self.pending}


@dataclass
class ShadowMember:
    metadata: ConsumerGroupMemberMetadataValue | None = None
    current: Current | None = None
    target: frozenset[Place] | None = None

    @property
    def is_member(self) -> bool:
        return self.metadata is not None or self.current is not None


@dataclass
class ShadowGroup:
    epoch: int = 1
    metadata_hash: int = 0
    target_epoch: int = 1
    assignment_timestamp: int = 0
    has_partition_metadata: bool = False
    is_epoch_known: bool = False
    """A converted group's members precede its epoch in the log."""
    is_target_epoch_known: bool = False
    entries: dict[str, ShadowMember] = field(default_factory=dict)
    resolved: dict[str, frozenset[str]] = field(default_factory=dict)

    def entry(self, member_id: str) -> ShadowMember:
        return self.entries.setdefault(member_id, ShadowMember())

    def members(self) -> dict[str, ShadowMember]:
        return {name: entry for name, entry in self.entries.items() if entry.is_member}

    def regexes(self) -> list[str]:
        """The regular expression of each member that has one."""
        said = [entry.metadata for entry in self.entries.values() if entry.metadata is not None]
        return [said.subscribed_topic_regex for said in said if said.subscribed_topic_regex]

    def topics_of(self, member_id: str) -> frozenset[str]:
        """A member's subscribed topics: by name, and by its resolved regular expression."""
        metadata = self.entries[member_id].metadata
        if metadata is None:
            return frozenset()
        topics = self.resolved.get(metadata.subscribed_topic_regex or "", frozenset())
        return topics.union(metadata.subscribed_topic_names)

    def drop_if_empty(self, member_id: str) -> None:
        entry = self.entries.get(member_id)
        if entry is not None and not entry.is_member and entry.target is None:
            del self.entries[member_id]


class Shadow:
    """All groups of all log partitions."""

    def __init__(self) -> None:
        self.groups: dict[str, ShadowGroup] = {}
        self.classic: dict[GroupId, GroupMetadataValue] = {}
        self.foreign = ShadowForeign()

    def apply(self, record: Record) -> None:
        """Apply one record; records must come in log order."""
        key, value = record
        match key:
            case GroupMetadataKey():
                if value is None:
                    self.classic.pop(key.group, None)
                elif isinstance(value, GroupMetadataValue):
                    self.classic[key.group] = value
            case (
                ConsumerGroupMetadataKey()
                | ConsumerGroupPartitionMetadataKey()
                | ConsumerGroupTargetAssignmentMetadataKey()
                | ConsumerGroupRegularExpressionKey()
            ):
                self._apply_to_group(key, value)
            case (
                ConsumerGroupMemberMetadataKey()
                | ConsumerGroupTargetAssignmentMemberKey()
                | ConsumerGroupCurrentMemberAssignmentKey()
            ):
                self._apply_to_member(key, value)
            case _:
                self.foreign.apply(key, value)

    def _apply_to_group(self, key: Any, value: Any) -> None:
        if value is None and key.group_id not in self.groups:
            return
        group = self.groups.setdefault(key.group_id, ShadowGroup())
        match key:
            case ConsumerGroupPartitionMetadataKey():
                group.has_partition_metadata = value is not None
            case ConsumerGroupTargetAssignmentMetadataKey():
                group.target_epoch = -1 if value is None else value.assignment_epoch
                group.assignment_timestamp = 0 if value is None else value.assignment_timestamp
                group.is_target_epoch_known = value is not None
            case ConsumerGroupRegularExpressionKey() if value is None:
                group.resolved.pop(key.regular_expression, None)
            case ConsumerGroupRegularExpressionKey():
                group.resolved[key.regular_expression] = frozenset(value.topics)
            case _ if value is None:
                del self.groups[key.group_id]
            case _:
                group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
                group.is_epoch_known = True

    def _apply_to_member(self, key: Any, value: Any) -> None:
        if value is None and key.group_id not in self.groups:
            return
        group = self.groups.setdefault(key.group_id, ShadowGroup())
        if value is None and key.member_id not in group.entries:
            return
        match key:
            case ConsumerGroupMemberMetadataKey():
                if value is None:
                    del group.entries[key.member_id]
                else:
                    group.entry(key.member_id).metadata = value
            case ConsumerGroupTargetAssignmentMemberKey():
                entry = group.entry(key.member_id)
                entry.target = None if value is None else places(value.topic_partitions)
            case _:
                group.entry(key.member_id).current = None if value is None else current_of(value)
        group.drop_if_empty(key.member_id)


def places(topics: Iterable[TopicPartitions | AssignedTopicPartitions]) -> frozenset[Place]:
    """The partitions as (topic, partition) pairs."""
    return frozenset((topic.topic_id, p) for topic in topics for p in topic.partitions)


def current_of(value: ConsumerGroupCurrentMemberAssignmentValue) -> Current:
    """The current assignment in a record of type 8."""
    return Current(
        value.member_epoch,
        value.previous_member_epoch,
        value.state,
        _epochs(value.assigned_partitions, value.member_epoch),
        _epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def _epochs(topics: Iterable[AssignedTopicPartitions], member_epoch: int) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or (member_epoch,) * len(topic.partitions)
        found.update(
            ((topic.topic_id, p), epoch) for p, epoch in zip(topic.partitions, epochs, strict=True)
        )
    return found


# ------------------------------------------------------------------------------- descriptions


def describe_shadow_group(group: ShadowGroup) -> Description:
    """Everything that determines the group's future, by names."""
    members = group.members()
    return {
        "epoch": group.epoch,
        "metadata_hash": group.metadata_hash,
        "target_epoch": group.target_epoch,
        "assignment_timestamp": group.assignment_timestamp,
        "has_partition_metadata": group.has_partition_metadata,
        "member_count": len(members),
        "entries": {name: _describe_shadow_member(entry) for name, entry in group.entries.items()},
        "untargeted": {name for name, entry in members.items() if entry.target is None},
        "owner": {
            place: name
            for name, entry in members.items()
            if entry.current is not None
            for place in entry.current.held()
        },
        "target": {
            place: name for name, entry in group.entries.items() for place in entry.target or ()
        },
        "subscribed": _count(
            topic
            for entry in members.values()
            if entry.metadata is not None
            for topic in entry.metadata.subscribed_topic_names
        ),
        "resolved": group.resolved,
        "regexes": _count(group.regexes()),
        "regex topics": _count(
            topic for regex in set(group.regexes()) for topic in group.resolved.get(regex, ())
        ),
        "assignors": _count(
            entry.metadata.server_assignor
            for entry in members.values()
            if entry.metadata is not None and entry.metadata.server_assignor is not None
        ),
        "instances": {
            entry.metadata.instance_id: name
            for name, entry in members.items()
            if entry.metadata is not None and entry.metadata.instance_id is not None
        },
    }


def _count(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _describe_shadow_member(entry: ShadowMember) -> Description:
    current = entry.current
    return {
        "metadata": entry.metadata,
        "target": entry.target,
        "current": None
        if current is None
        else (
            current.epoch,
            current.previous,
            current.state,
            current.assigned,
            current.pending,
        ),
    }


def describe_group(group: ConsumerGroup) -> Description:
    """The same for a live group."""
    place_of = _places_of(group)
    slots = group.slots

    def owners(numbers: Iterable[int]) -> dict[Place, str]:
        found: dict[Place, str] = {}
        for number, slot in enumerate(numbers):
            if slot != NOBODY:
                entry = slots[slot]
                assert entry is not None, f"slot {slot} is nobody's"
                found[place_of[number]] = entry.member_id
        return found

    entries = {}
    for entry in group.entries.values():
        assert slots[entry.slot] is entry
        entries[entry.member_id] = _describe_member(group, entry, place_of)
    return {
        "epoch": group.group_epoch,
        "metadata_hash": group.metadata_hash,
        "target_epoch": group.target_epoch,
        "assignment_timestamp": group.assignment_timestamp,
        "has_partition_metadata": group.has_partition_metadata,
        "member_count": group.member_count,
        "entries": entries,
        "untargeted": {slots[slot].member_id for slot in group.untargeted},  # type: ignore[union-attr]
        "owner": owners(group.owner),
        "target": owners(group.target),
        "subscribed": dict(group.subscribed_names),
        "resolved": dict(group.resolved_regexes),
        "regexes": dict(group.regexes),
        "regex topics": dict(group.regex_topics),
        "assignors": dict(group.server_assignors),
        "instances": dict(group.static_members),
    }


def _places_of(group: ConsumerGroup) -> list[Place]:
    found: list[Place] = [(TopicId(b""), -1)] * len(group.numbers)
    for topic_id in group.numbers.topics:
        for first, base, size, _ in group.numbers.ranges(topic_id):
            for index in range(size):
                found[base + index] = (topic_id, first + index)
    return found


def _describe_member(group: ConsumerGroup, entry: Member, place_of: list[Place]) -> Description:
    epoch_of = group.assignment_epoch_of
    return {
        "metadata": entry.metadata,
        "target": None if entry.target is None else frozenset(place_of[n] for n in entry.target),
        "current": (
            entry.member_epoch,
            entry.previous_member_epoch,
            int(entry.state),
            {place_of[n]: epoch_of[n] for n in entry.assigned},
            {place_of[n]: epoch_of[n] for n in entry.pending_revocation},
        )
        if entry.has_current
        else None,
    }


def describe_shards(shards: Iterable[Shard]) -> dict[str, Description]:
    """All consumer groups of these shards, and the subscribers of each topic."""
    found: dict[str, Description] = {}
    by_topic: dict[str, set[str]] = {}
    for shard in shards:
        found.update((name, describe_group(g)) for name, g in shard.consumer_groups.items())
        for topic, groups in shard.groups_by_topic.items():
            by_topic.setdefault(topic, set()).update(groups)
    found["groups by topic"] = dict(by_topic)
    found["classic"] = {name: v for shard in shards for name, v in shard.classic_groups.items()}
    found["foreign"] = {
        name: describe_foreign(group)
        for shard in shards
        for name, group in shard.foreign_groups.items()
    }
    return found


def describe_shadow(shadow: Shadow) -> dict[str, Description]:
    """The same for a shadow."""
    found = {name: describe_shadow_group(group) for name, group in shadow.groups.items()}
    by_topic: dict[str, set[str]] = {}
    for name, description in found.items():
        for topic in {**description["subscribed"], **description["regex topics"]}:
            by_topic.setdefault(topic, set()).add(name)
    found["groups by topic"] = dict(by_topic)
    found["classic"] = {
        name: compute_classic_group(name, value) for name, value in shadow.classic.items()
    }
    found["foreign"] = shadow.foreign.describe()
    return found
