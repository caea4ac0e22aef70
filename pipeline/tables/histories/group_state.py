"""What a group is at a place of its log, by names: a replay that shares no code with the server's.

A compacted log lacks what was superseded: members may come before their group, targets before
their members. What no record has told is ``None``.
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
"""A partition: the topic's id, or its name where a classic group holds it, and the number."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
AWAY_EPOCH = -2
"""Of a static member that left and may come back."""

_FOREIGN = {ShareGroupMetadataKey: SHARE, StreamsGroupMetadataKey: STREAMS}


@dataclass(slots=True)
class Standing:
    """Where a member stands; what it holds, with assignment epochs."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: dict[Place, int]
    pending: dict[Place, int]

    def holds(self, place: Place) -> bool:
        """Whether no other member may have the partition."""
        return place in self.assigned or place in self.pending

    def held(self) -> Iterator[tuple[Place, int]]:
        """All that no other member may have, with epochs."""
        yield from self.assigned.items()
        yield from self.pending.items()


@dataclass(slots=True)
class GroupState:
    """One group. ``types`` has more than one name only in the middle of a conversion."""

    group_id: str
    epoch: int | None = None
    metadata_hash: int = 0
    target_epoch: int | None = None
    members: dict[str, ConsumerGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, frozenset[Place]] = field(default_factory=dict)
    target_owner: dict[Place, str] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    classic: GroupMetadataValue | None = None
    foreign: set[str] = field(default_factory=set)
    was_deleted: bool = False
    """A consumer group of this id was deleted, and none has come since."""
    offsets: dict[str, set[int]] = field(default_factory=dict)
    """Partitions with a committed offset, by topic; kept where the observers are shown offsets."""

    def types(self) -> set[str]:
        """The types of group that the id stands for."""
        found = set(self.foreign)
        if self.classic is not None:
            found.add(CLASSIC)
        if self.epoch is not None:
            found.add(CONSUMER)
        return found

    def has_parts(self) -> bool:
        """Whether there is anything of a consumer group but its epoch."""
        return bool(self.members or self.targets or self.standings)

    def has_members(self) -> bool:
        """Whether a member of a served type is there."""
        return bool(self.members or (self.classic is not None and self.classic.members))

    # ---------------------------------------------------------------------------------- changes

    def apply_offset(self, topic: str, partition: int, is_deletion: bool) -> None:
        """An offset is there, or is gone."""
        if not is_deletion:
            self.offsets.setdefault(topic, set()).add(partition)
            return
        partitions = self.offsets.get(topic)
        if partitions is not None:
            partitions.discard(partition)
            if not partitions:
                del self.offsets[topic]

    def apply(self, key: RecordKey, value: RecordValue | None) -> None:
        """One record that is no offset."""
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
                self._apply_standing(key.member_id, value)
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
        for parts in (self.members, self.targets, self.target_owner, self.standings, self.regexes):
            parts.clear()

    def _apply_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        if value is not None:
            self.members[member_id] = value
            return
        self.members.pop(member_id, None)
        self.standings.pop(member_id, None)
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

    def _apply_standing(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        if value is None:
            self.standings.pop(member_id, None)
        else:
            self.standings[member_id] = read_standing(value)

    # -------------------------------------------------------------------------------- questions

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, as far as records say.

        A classic group whose subscriptions cannot be read counts as subscribed to everything,
        as for Kafka, which does not expire its offsets while it has members.
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
    """The partitions of a target."""
    return frozenset(
        (topic.topic_id, number) for topic in value.topic_partitions for number in topic.partitions
    )


def read_standing(value: ConsumerGroupCurrentMemberAssignmentValue) -> Standing:
    """Where a member stands by its record."""
    return Standing(
        value.member_epoch,
        value.previous_member_epoch,
        value.state,
        _read_places(value.assigned_partitions, value.member_epoch),
        _read_places(value.partitions_pending_revocation, value.member_epoch),
    )


def _read_places(
    topics: tuple[AssignedTopicPartitions, ...], member_epoch: int
) -> dict[Place, int]:
    """Partitions with their epochs; before Kafka 4.3 the member's own stands for them."""
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
    """What the leader gave a member of a classic group; nothing where that cannot be read."""
    try:
        topics = decode_assignment(member.assignment).partitions if member.assignment else ()
    except MalformedProtocolError:
        return frozenset()
    return frozenset((topic.topic, number) for topic in topics for number in topic.partitions)


def read_classic_assignments(value: GroupMetadataValue) -> Mapping[str, frozenset[Place]]:
    """What each member of a classic group holds; nothing unless it is of the type consumer."""
    if value.protocol_type != PROTOCOL_TYPE:
        return {}
    return {member.member_id: read_classic_places(member) for member in value.members}


def read_classic_topics(value: GroupMetadataValue) -> frozenset[str] | None:
    """The topics that the members subscribe to; ``None`` where that cannot be read."""
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
    """Kafka's 22 characters."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def read_topic_id(text: str) -> bytes:
    """The id of which ``show_topic_id`` makes this."""
    return base64.urlsafe_b64decode(text + "==")
