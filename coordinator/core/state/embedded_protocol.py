"""What members of classic groups of the type ``consumer`` say, in the words of the core.

The bytes are read in `muster.assignors.embedded`. The coordinator needs no more than topics and
partitions, and bytes that it cannot read are the members' affair: it only has to know that it
cannot say what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable

from model.commands import JoinGroup
from model.errors import InvalidRequest
from model.ids import TopicName
from model.value import value
from muster.assignors import embedded

PROTOCOL_TYPE = embedded.PROTOCOL_TYPE
NO_GENERATION = embedded.NO_GENERATION

_VERSION_SIZE = 2


@value
class AssignedPartitions:
    """Partitions of one topic, as the leader of the group gave them."""

    topic: TopicName
    partitions: tuple[int, ...]


@value
class MemberSubscription:
    """What a member says when it joins: its topics, and what it owns since which generation.

    ``generation`` is ``NO_GENERATION`` where it does not say.
    """

    topics: tuple[TopicName, ...]
    owned: tuple[AssignedPartitions, ...]
    generation: int
    rack: str | None


def check_subscriptions(command: JoinGroup, most: int) -> None:
    """Raises ``InvalidRequest`` for a subscription of too many topics, without decoding it."""
    if command.protocol_type == PROTOCOL_TYPE:
        for protocol in command.protocols:
            if embedded.count_topics(protocol.metadata, most) > most:
                raise InvalidRequest(f"A member cannot subscribe to more than {most} topics.")


def count_subscribed_topics(metadata: bytes) -> int:
    """How many topics a subscription says that it has; nothing is decoded."""
    return int.from_bytes(metadata[2:6], "big", signed=True)


def decode_subscription(metadata: bytes) -> MemberSubscription | None:
    """A subscription as a whole; ``None`` for bytes that are none."""
    try:
        decoded = embedded.decode_subscription(metadata)
    except embedded.MalformedProtocolError:
        return None
    return MemberSubscription(
        tuple(map(TopicName, decoded.topics)),
        tuple(
            AssignedPartitions(TopicName(each.topic), each.partitions)
            for each in decoded.owned_partitions
        ),
        decoded.generation,
        decoded.rack,
    )


def encode_assignment(
    partitions: Iterable[AssignedPartitions], subscription: bytes, user_data: bytes | None = None
) -> bytes:
    """An assignment in the version of the member's subscription, as far as there is one of it."""
    version = int.from_bytes(subscription[:_VERSION_SIZE], "big", signed=True)
    version = min(max(version, 0), embedded.HIGHEST_VERSION)
    assigned = tuple(embedded.TopicPartitions(each.topic, each.partitions) for each in partitions)
    return embedded.encode_assignment(embedded.Assignment(assigned, user_data), version)


def decode_subscribed_topics(metadata: bytes) -> tuple[TopicName, ...] | None:
    """The topics of a subscription; ``None`` for bytes that are no subscription."""
    try:
        return tuple(map(TopicName, embedded.decode_subscribed_topics(metadata)))
    except embedded.MalformedProtocolError:
        return None


def decode_user_data(assignment: bytes) -> bytes | None:
    """What an assignor gave a member beside partitions; ``None`` where there is none to be read."""
    try:
        return embedded.decode_assignment(assignment).user_data or None
    except embedded.MalformedProtocolError:
        return None


def decode_assigned_partitions(assignment: bytes) -> tuple[AssignedPartitions, ...] | None:
    """The partitions of an assignment; ``None`` for bytes that are no assignment."""
    try:
        decoded = embedded.decode_assignment(assignment)
    except embedded.MalformedProtocolError:
        return None
    return tuple(
        AssignedPartitions(TopicName(each.topic), each.partitions) for each in decoded.partitions
    )
