"""The embedded protocol as the core reads it: ``None`` for bytes that are not a valid message.

`muster.assignors.embedded` reads and writes the bytes, and has the types. The coordinator passes on
bytes that it cannot read: only the members need to understand them.
"""

from __future__ import annotations

from collections.abc import Iterable

from model.commands.classic import JoinGroup
from model.errors import InvalidRequest
from model.ids import TopicName
from muster.assignors import embedded

PROTOCOL_TYPE = embedded.PROTOCOL_TYPE
NO_GENERATION = embedded.NO_GENERATION


def check_subscriptions(command: JoinGroup, most: int) -> None:
    """Raises ``InvalidRequest`` for a subscription of too many topics, without decoding it."""
    if command.protocol_type == PROTOCOL_TYPE:
        for protocol in command.protocols:
            if embedded.count_topics(protocol.metadata, most) > most:
                raise InvalidRequest(f"A member cannot subscribe to more than {most} topics.")


def decode_subscription(metadata: bytes) -> embedded.Subscription | None:
    """A subscription as a whole; ``None`` for bytes that are none."""
    try:
        return embedded.decode_subscription(metadata)
    except embedded.MalformedProtocolError:
        return None


def encode_assignment(
    partitions: Iterable[embedded.TopicPartitions],
    subscription: bytes,
    user_data: bytes | None = None,
) -> bytes:
    """An assignment in the version of the member's subscription, or in the nearest known."""
    version = min(max(embedded.peek_version(subscription), 0), embedded.HIGHEST_VERSION)
    return embedded.encode_assignment(embedded.Assignment(tuple(partitions), user_data), version)


def decode_subscribed_topics(metadata: bytes) -> tuple[TopicName, ...] | None:
    """The topics of a subscription; ``None`` for bytes that are no subscription."""
    try:
        return tuple(map(TopicName, embedded.decode_subscribed_topics(metadata)))
    except embedded.MalformedProtocolError:
        return None


def decode_user_data(assignment: bytes) -> bytes | None:
    """The user data of an assignment; ``None`` if it is empty or the assignment is invalid."""
    try:
        return embedded.decode_assignment(assignment).user_data or None
    except embedded.MalformedProtocolError:
        return None


def decode_assigned_partitions(assignment: bytes) -> tuple[embedded.TopicPartitions, ...] | None:
    """The partitions of an assignment; ``None`` for bytes that are no assignment."""
    try:
        return embedded.decode_assignment(assignment).partitions
    except embedded.MalformedProtocolError:
        return None
