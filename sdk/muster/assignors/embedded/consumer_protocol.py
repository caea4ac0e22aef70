"""The subscription of a member and the assignment that the leader computes for it.

Both start with their version. A version only appends fields to the one before. So, as in Kafka's
clients, a newer version is read as the newest known one and the remaining bytes are ignored;
negative versions are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.assignors.embedded.fields import (
    INT32_SIZE,
    MalformedProtocolError,
    Reader,
    TopicPartitions,
    Writer,
    group_partitions,
)

PROTOCOL_TYPE = "consumer"
HIGHEST_VERSION = 3
NO_GENERATION = -1

_FIRST_WITH_OWNED_PARTITIONS = 1
_FIRST_WITH_GENERATION = 2
_FIRST_WITH_RACK = 3

_VERSION_SIZE = 2


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's metadata for one assignor.

    ``owned_partitions`` exists from version 1, ``generation`` from 2, ``rack`` from 3.
    ``generation`` is the one in which the member got its partitions, NO_GENERATION for none.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartitions, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The leader's assignment for a member. All versions have the same fields."""

    partitions: tuple[TopicPartitions, ...]
    user_data: bytes | None = None


def make_subscription(
    topics: Iterable[str],
    user_data: bytes | None = None,
    owned_partitions: Iterable[tuple[str, int]] = (),
    generation: int = NO_GENERATION,
    rack: str | None = None,
) -> Subscription:
    """A subscription with topics and owned partitions in the order of Kafka's consumer."""
    owned = group_partitions(sorted(owned_partitions))
    return Subscription(tuple(sorted(topics)), user_data, owned, generation, rack)


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """Encode a subscription; fields that the version lacks are left out.

    Raise MalformedProtocolError for an unknown version and for values out of range.
    """
    writer = _start_writing("subscription", version)
    writer.strings(subscription.topics)
    writer.nullable_bytes(subscription.user_data)
    if version >= _FIRST_WITH_OWNED_PARTITIONS:
        writer.topics_partitions(subscription.owned_partitions)
    if version >= _FIRST_WITH_GENERATION:
        writer.int32(subscription.generation)
    if version >= _FIRST_WITH_RACK:
        writer.nullable_string(subscription.rack)
    return writer.finish()


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription. Raise MalformedProtocolError if it is malformed.

    Version 1 may end before the owned partitions, which are then none (kafka-go, platformatic and
    faust write that; all of them are eager). Kafka's coordinator cannot read it.
    """
    reader, version = _start_reading("subscription", data)
    topics, user_data = reader.strings(), reader.nullable_bytes()
    has_owned = version >= _FIRST_WITH_OWNED_PARTITIONS
    if version == _FIRST_WITH_OWNED_PARTITIONS and reader.is_at_end:
        has_owned = False
    return Subscription(
        topics=topics,
        user_data=user_data,
        owned_partitions=reader.topics_partitions() if has_owned else (),
        generation=reader.int32() if version >= _FIRST_WITH_GENERATION else NO_GENERATION,
        rack=reader.nullable_string() if version >= _FIRST_WITH_RACK else None,
    )


def leaves_out_owned(data: bytes) -> bool:
    """Whether a well-formed subscription has version 1 and ends before the owned partitions."""
    reader, version = _start_reading("subscription", data)
    reader.strings()
    reader.nullable_bytes()
    return version == _FIRST_WITH_OWNED_PARTITIONS and reader.is_at_end


def peek_version(data: bytes) -> int:
    """The version field of a message; nothing else is read."""
    return int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)


def peek_topic_count(data: bytes) -> int:
    """How many topics a subscription says that it names; nothing is decoded."""
    count = data[_VERSION_SIZE : _VERSION_SIZE + INT32_SIZE]
    return int.from_bytes(count, "big", signed=True)


def decode_subscribed_topics(data: bytes) -> tuple[str, ...]:
    """The topics of a subscription: reads the fields of version 0 only.

    Raise MalformedProtocolError if these are malformed. Kafka's coordinator reads the same
    (``ClassicGroup.computeSubscribedTopics``).
    """
    reader, _ = _start_reading("subscription", data)
    topics = reader.strings()
    reader.nullable_bytes()
    return topics


def count_topics(data: bytes, enough: int) -> int:
    """The number of subscribed topics or of topics with owned partitions, whichever is greater.

    Stop once there are more than ``enough``; 0 if it is not a subscription. Costs far less than
    decoding.
    """
    try:
        reader, version = _start_reading("subscription", data)
        named = reader.skip_strings(enough)
        if named > enough or version < _FIRST_WITH_OWNED_PARTITIONS:
            return named
        reader.nullable_bytes()
        return max(named, reader.peek_count())
    except MalformedProtocolError:
        return 0


def encode_assignment(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """Encode an assignment. Raise MalformedProtocolError for an unknown version or bad values."""
    writer = _start_writing("assignment", version)
    writer.topics_partitions(assignment.partitions)
    writer.nullable_bytes(assignment.user_data)
    return writer.finish()


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment. Raise MalformedProtocolError if it is malformed."""
    reader, _ = _start_reading("assignment", data)
    return Assignment(reader.topics_partitions(), reader.nullable_bytes())


def _start_writing(message: str, version: int) -> Writer:
    if not 0 <= version <= HIGHEST_VERSION:
        raise MalformedProtocolError(
            f"version {version} of the {message} is not in 0..{HIGHEST_VERSION}"
        )
    writer = Writer()
    writer.int16(version)
    return writer


def _start_reading(message: str, data: bytes) -> tuple[Reader, int]:
    reader = Reader(data)
    version = reader.int16()
    if version < 0:
        raise MalformedProtocolError(f"version {version} of the {message} is negative")
    return reader, min(version, HIGHEST_VERSION)
