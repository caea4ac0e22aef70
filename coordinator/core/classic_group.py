"""A classic group: what its one record says, as Kafka's loader takes it.

The state is derived: Stable with members, Empty without. The states in between belong to a
rebalance that is under way in a live coordinator; no record has them (Kafka's
``GroupMetadataManager.replay`` of ``GroupMetadataValue``).
"""

from __future__ import annotations

from enum import Enum

from coordinator.core.consumer_protocol import PROTOCOL_TYPE, decode_subscribed_topics
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.records import ClassicGroupMember, GroupMetadataValue
from model.value import value

NO_TIMESTAMP = -1
NO_TIMEOUT = -1


class ClassicGroupState(Enum):
    """The states of a classic group, in Kafka's spelling."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@value
class ClassicMember:
    """A member. ``metadata`` is what it said for the protocol that was chosen."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    metadata: bytes
    assignment: bytes


@value
class ClassicGroup:
    """One classic group, with its members in the order of the record.

    ``protocol_type`` and ``protocol_name`` are ``None`` where no member has said one.
    ``current_state_timestamp_ms`` is the wall time since which the group is in its state, ``None``
    in records of old versions. ``subscribed_topics`` are those of all members; ``None`` where
    the group is not of the type ``consumer`` or a member's metadata cannot be read.
    """

    group_id: GroupId
    state: ClassicGroupState
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: MemberId | None
    current_state_timestamp_ms: int | None
    members: tuple[ClassicMember, ...]
    subscribed_topics: frozenset[TopicName] | None


def compute_classic_group(group_id: GroupId, record: GroupMetadataValue) -> ClassicGroup:
    """The group that a record of type 2 stands for."""
    members = tuple(_member(member) for member in record.members)
    first = members[0].member_id if members else None
    since_ms = record.current_state_timestamp
    return ClassicGroup(
        group_id,
        ClassicGroupState.STABLE if members else ClassicGroupState.EMPTY,
        record.generation,
        record.protocol_type or None,
        record.protocol,
        record.leader if record.leader is not None else first,
        None if since_ms == NO_TIMESTAMP else since_ms,
        members,
        compute_subscribed_topics(record.protocol_type, record.protocol, members),
    )


def _member(member: ClassicGroupMember) -> ClassicMember:
    rebalance_timeout_ms = member.rebalance_timeout
    return ClassicMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        # Records of version 0 have none.
        member.session_timeout if rebalance_timeout_ms == NO_TIMEOUT else rebalance_timeout_ms,
        member.session_timeout,
        member.subscription,
        member.assignment,
    )


def compute_subscribed_topics(
    protocol_type: str, protocol_name: str | None, members: tuple[ClassicMember, ...]
) -> frozenset[TopicName] | None:
    """The topics that the members subscribe to, where that can be known."""
    if protocol_type != PROTOCOL_TYPE:
        return None
    topics: set[TopicName] = set()
    for member in members:
        said = None if protocol_name is None else decode_subscribed_topics(member.metadata)
        if said is None:
            return None
        topics.update(said)
    return frozenset(topics)
