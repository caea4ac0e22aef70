"""Responses that list and describe groups of any protocol."""

from __future__ import annotations

from model.errors import ErrorCode
from model.group_freeze import GroupFreeze
from model.ids import GroupId, InstanceId, MemberId, TopicId, TopicName
from model.value import value


@value
class NamedTopicPartitions:
    """Partitions of an existing topic, with its name.

    ``tokens`` are the fencing tokens of the partitions; empty if they are not known, or not owned.
    """

    topic_id: TopicId
    topic_name: TopicName
    partitions: tuple[int, ...]
    tokens: tuple[int, ...] = ()


@value
class DescribedWait:
    """Partitions of a member's target assignment that another member still owns.

    ``waited_ms`` counts from when the target was computed. ``left_ms`` is how much longer the owner
    may keep them before its rebalance timeout removes it; ``None`` until it has been asked for
    them, and both are ``None`` for the past.
    """

    owner_id: MemberId
    partitions: tuple[NamedTopicPartitions, ...]
    waited_ms: int | None
    left_ms: int | None


@value
class DescribedMember:
    """A member as ConsumerGroupDescribe shows it. ``member_type`` 1: the consumer protocol."""

    member_id: MemberId
    instance_id: InstanceId | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[TopicName, ...]
    subscribed_topic_regex: str | None
    assignment: tuple[NamedTopicPartitions, ...]
    pending_revocation: tuple[NamedTopicPartitions, ...]
    target_assignment: tuple[NamedTopicPartitions, ...]
    state: str
    member_type: int = 1
    waits: tuple[DescribedWait, ...] = ()

    def compute_weight(self) -> int:
        """How much it takes to show it, as so many members with one topic."""
        topics = len(self.assignment) + len(self.target_assignment) + len(self.pending_revocation)
        return 1 + (topics + len(self.waits)) // 4 + len(self.subscribed_topic_names) // 32


@value
class DescribedConsumerGroup:
    """A consumer group, or the error of describing it; the other fields are then the defaults."""

    group_id: GroupId
    error: ErrorCode
    error_message: str | None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    freeze: GroupFreeze | None = None


@value
class ConsumerGroupDescribeResponse:
    groups: tuple[DescribedConsumerGroup, ...]


@value
class ListedGroup:
    """``group_type`` and ``state`` are in Kafka's spelling: ``consumer``, ``Stable``.

    ``group_epoch`` is the generation of a classic group. ``frozen_since_ms`` is wall time, 0 if the
    group is not frozen.
    """

    group_id: GroupId
    protocol_type: str
    state: str
    group_type: str
    members: int
    group_epoch: int
    frozen_since_ms: int = 0


@value
class ListGroupsResponse:
    groups: tuple[ListedGroup, ...]


@value
class DescribedClassicMember:
    """A member of a classic group; ``metadata`` is empty unless the group is Stable."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes

    def compute_weight(self) -> int:
        """How much it takes to show it, as so many members with one topic."""
        return 1 + (len(self.metadata) + len(self.assignment)) // 256


@value
class MembersRemoved:
    """Members as they were before they were removed, or would be; ``remaining`` are left.

    They are ``members`` of a consumer group or ``classic_members`` of a group of this protocol
    type. ``revision`` names the group as it was.
    """

    revision: str
    remaining: int
    members: tuple[DescribedMember, ...] = ()
    classic_members: tuple[DescribedClassicMember, ...] = ()
    protocol_type: str = ""

    @property
    def of_any_protocol(self) -> tuple[DescribedMember | DescribedClassicMember, ...]:
        return (*self.members, *self.classic_members)


@value
class DescribedClassicGroup:
    """A classic group, or the error of describing it.

    ``protocol`` is the selected protocol, empty unless the group is Stable. ``generation`` is not
    in Kafka's response.
    """

    group_id: GroupId
    error: ErrorCode
    error_message: str | None
    state: str
    protocol_type: str
    protocol: str
    generation: int = 0
    members: tuple[DescribedClassicMember, ...] = ()


@value
class DescribeGroupsResponse:
    groups: tuple[DescribedClassicGroup, ...]
