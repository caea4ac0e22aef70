"""The state of a group at a point of its log, by names: a replay independent of the server's.

A compacted log lacks superseded records: members may come before their group, targets before their
members. Values are ``None`` until a record sets them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from model.log.records import (
    AssignedTopicPartitions,
    ClassicGroupMember,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberState,
    RecordKey,
    RecordValue,
    UnknownValue,
)
from model.log.share_records import ShareGroupMetadataKey
from model.log.streams_records import StreamsGroupMetadataKey
from muster.assignors.embedded import (
    PROTOCOL_TYPE,
    MalformedProtocolError,
    decode_assignment,
    decode_subscribed_topics,
)

Place = tuple[bytes | str, int]
"""A partition: the topic's id, or its name for a classic group, and the number."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
AWAY_EPOCH = -2
"""The epoch of a static member that left temporarily."""

_FOREIGN = {ShareGroupMetadataKey: SHARE, StreamsGroupMetadataKey: STREAMS}


@dataclass(slots=True)
class CurrentAssignment:
    """A member's current assignment: its epoch and state, and its partitions with their epochs."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: dict[Place, int]
    pending: dict[Place, int]

    def holds(self, place: Place) -> bool:
        """Whether the member owns the partition, so that no other may have it."""
        return place in self.assigned or place in self.pending

    def held(self) -> Iterator[tuple[Place, int]]:
        """All partitions that the member owns, with their epochs."""
        yield from self.assigned.items()
        yield from self.pending.items()


@dataclass(slots=True)
class GroupState:
    """The state of one group. ``types`` has several names only during a conversion."""

    group_id: str
    epoch: int | None = None
    metadata_hash: int = 0
    target_epoch: int | None = None
    members: dict[str, ConsumerGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, frozenset[Place]] = field(default_factory=dict)
    target_owner: dict[Place, str] = field(default_factory=dict)
    current_assignments: dict[str, CurrentAssignment] = field(default_factory=dict)
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    classic: GroupMetadataValue | None = None
    foreign: set[str] = field(default_factory=set)
    was_deleted: bool = False
    """A consumer group of this id was deleted, and none was created since."""
    offsets: dict[str, set[int]] = field(default_factory=dict)
    """Partitions with a committed offset, by topic; kept only if observers are shown offsets."""

    def types(self) -> set[str]:
        """The group types that the id has."""
        found = set(self.foreign)
        if self.classic is not None:
            found.add(CLASSIC)
        if self.epoch is not None:
            found.add(CONSUMER)
        return found

    def has_parts(self) -> bool:
        """Whether the consumer group has any record besides its epoch."""
        return bool(self.members or self.targets or self.current_assignments)

    def has_members(self) -> bool:
        """Whether a consumer or classic group has a member."""
        return bool(self.members or (self.classic is not None and self.classic.members))

    # ---------------------------------------------------------------------------------- changes

    def apply_offset(self, topic: str, partition: int, is_deletion: bool) -> None:
        """Apply a commit or a deletion."""
        if not is_deletion:
            self.offsets.setdefault(topic, set()).add(partition)
            return
        partitions = self.offsets.get(topic)
        if partitions is not None:
            partitions.discard(partition)
            if not partitions:
                del self.offsets[topic]

    def apply(self, key: RecordKey, value: RecordValue | None) -> None:
        """Apply a record other than an offset."""
        if isinstance(value, UnknownValue):
            return
        match key:
            case ConsumerGroupMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupMetadataValue)
                self._apply_epoch(value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                assert value is None or isinstance(
                    value, ConsumerGroupTargetAssignmentMetadataValue
                )
                self.target_epoch = None if value is None else value.assignment_epoch
            case ConsumerGroupMemberMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupMemberMetadataValue)
                self._apply_member(key.member_id, value)
            case ConsumerGroupTargetAssignmentMemberKey():
                assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
                self._apply_target(key.member_id, value)
            case ConsumerGroupCurrentMemberAssignmentKey():
                assert value is None or isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
                self._apply_current_assignment(key.member_id, value)
            case ConsumerGroupRegularExpressionKey():
                assert value is None or isinstance(value, ConsumerGroupRegularExpressionValue)
                self.regexes.pop(key.regular_expression, None)
                if value is not None:
                    self.regexes[key.regular_expression] = value.topics
            case GroupMetadataKey():
                assert value is None or isinstance(value, GroupMetadataValue)
                self.classic = value
            case ShareGroupMetadataKey() | StreamsGroupMetadataKey():
                (self.foreign.discard if value is None else self.foreign.add)(_FOREIGN[type(key)])
            case _:
                pass

    def _apply_epoch(self, value: ConsumerGroupMetadataValue | None) -> None:
        if value is not None:
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            self.was_deleted = False
            return
        self.epoch = self.target_epoch = None
        self.metadata_hash = 0
        self.was_deleted = True
        for parts in (
            self.members,
            self.targets,
            self.target_owner,
            self.current_assignments,
            self.regexes,
        ):
            parts.clear()

    def _apply_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        if value is not None:
            self.members[member_id] = value
            return
        self.members.pop(member_id, None)
        self.current_assignments.pop(member_id, None)
        self._apply_target(member_id, None)

    def _apply_target(
        self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        for place in self.targets.pop(member_id, ()):
            if self.target_owner.get(place) == member_id:
                del self.target_owner[place]
        if value is not None:
            self.targets[member_id] = read_target(value)
            for place in self.targets[member_id]:
                self.target_owner[place] = member_id

    def _apply_current_assignment(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        if value is None:
            self.current_assignments.pop(member_id, None)
        else:
            self.current_assignments[member_id] = read_current_assignment(value)

    # -------------------------------------------------------------------------------- questions

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, according to the records.

        A classic group with unreadable subscriptions counts as subscribed to every topic, as in
        Kafka, which does not expire its offsets while it has members.
        """
        if self.has_subscriber(topic):
            return True
        if self.classic is None or not self.classic.members:
            return False
        topics = read_classic_topics(self.classic)
        return topics is None or topic in topics

    def has_subscriber(self, topic: str) -> bool:
        """Whether a member of the consumer group subscribes to the topic."""
        for member in self.members.values():
            regex = member.subscribed_topic_regex
            if topic in member.subscribed_topic_names or (
                regex and topic in self.regexes.get(regex, ())
            ):
                return True
        return False


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> frozenset[Place]:
    """The partitions of a member's target assignment."""
    return frozenset(
        (topic.topic_id, number) for topic in value.topic_partitions for number in topic.partitions
    )


def read_current_assignment(value: ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    """A member's current assignment, from its record."""
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        value.state,
        _read_places(value.assigned_partitions, value.member_epoch),
        _read_places(value.partitions_pending_revocation, value.member_epoch),
    )


def _read_places(
    topics: tuple[AssignedTopicPartitions, ...], member_epoch: int
) -> dict[Place, int]:
    """Partitions with their assignment epochs: the member's, in records older than Kafka 4.3."""
    found: dict[Place, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or ()
        for index, partition in enumerate(topic.partitions):
            epoch = epochs[index] if index < len(epochs) else member_epoch
            found[topic.topic_id, partition] = epoch
    return found


def read_state_name(state: int) -> str:
    """Kafka's name of a member's state."""
    try:
        return MemberState(state).name
    except ValueError:
        return MemberState.UNKNOWN.name


def read_classic_places(member: ClassicGroupMember) -> frozenset[Place]:
    """The leader's assignment for a classic member; empty if it is unreadable."""
    try:
        topics = decode_assignment(member.assignment).partitions if member.assignment else ()
    except MalformedProtocolError:
        return frozenset()
    return frozenset((topic.topic, number) for topic in topics for number in topic.partitions)


def read_classic_assignments(value: GroupMetadataValue) -> Mapping[str, frozenset[Place]]:
    """The assignments of a classic group's members; empty for other protocol types."""
    if value.protocol_type != PROTOCOL_TYPE:
        return {}
    return {member.member_id: read_classic_places(member) for member in value.members}


def read_classic_topics(value: GroupMetadataValue) -> frozenset[str] | None:
    """The topics that the members subscribe to; ``None`` if a subscription is unreadable."""
    if value.protocol_type != PROTOCOL_TYPE or value.protocol is None:
        return None
    topics: set[str] = set()
    for member in value.members:
        try:
            topics.update(decode_subscribed_topics(member.subscription))
        except MalformedProtocolError:
            return None
    return frozenset(topics)


@lru_cache(maxsize=65_536)
def show_topic_id(topic_id: bytes) -> str:
    """The topic id as Kafka's 22 characters."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def read_topic_id(text: str) -> bytes:
    """The inverse of ``show_topic_id``."""
    return base64.urlsafe_b64decode(text + "==")
