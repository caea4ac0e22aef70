"""Records of a group as who may describe it is shown them: the topics that they name."""

from __future__ import annotations

from typing import Final, Protocol

from coordinator.core.state.classic.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_assigned_partitions,
    decode_subscribed_topics,
)
from model.ids import TopicName
from model.log.records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    RecordType,
    UnknownValue,
)
from storage.codec.errors import CodecError
from storage.codec.record_codec import decode_key, decode_value, read_type

_TYPES: Final = frozenset(
    {
        *range(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT + 1),
        RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
    }
)
"""Records of offsets, and of classic and consumer groups."""


class KeyAndValue(Protocol):
    """A record as it lies in the log."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


def find_topics(record: KeyAndValue) -> frozenset[TopicName] | None:
    """The topics that a record names; ``None`` if this version cannot tell.

    That is so for records of other kinds of groups, and for those of newer or damaged versions.
    """
    assert record.key is not None
    try:
        kind = read_type(record.key)
        if kind not in _TYPES:
            return None
        key = decode_key(record.key)
        value = None if record.value is None else decode_value(kind, record.value)[1]
    except CodecError:
        return None
    match key, value:
        case _, UnknownValue():
            return None
        case ((OffsetCommitKey(topic=topic) | LegacyOffsetCommitKey(topic=topic)), _):
            return frozenset((topic,))
        case _, GroupMetadataValue():
            return frozenset(_find_topics_of_classic(value))
        case _, ConsumerGroupMemberMetadataValue():
            return frozenset(_find_topics_of_member(value))
        case _, ConsumerGroupPartitionMetadataValue():
            return frozenset(topic.topic_name for topic in value.topics)
        case _, ConsumerGroupRegularExpressionValue():
            return frozenset(value.topics)
        case _:
            return frozenset()


def _find_topics_of_classic(value: GroupMetadataValue) -> set[TopicName]:
    names: set[TopicName] = set()
    if value.protocol_type == PROTOCOL_TYPE:
        for member in value.members:
            names.update(decode_subscribed_topics(member.subscription) or ())
            given = decode_assigned_partitions(member.assignment) or ()
            names.update(TopicName(topic.topic) for topic in given)
    return names


def _find_topics_of_member(value: ConsumerGroupMemberMetadataValue) -> set[TopicName]:
    names = set(value.subscribed_topic_names)
    if value.classic_member_metadata is not None:
        for protocol in value.classic_member_metadata.supported_protocols:
            names.update(decode_subscribed_topics(protocol.metadata) or ())
    return names
