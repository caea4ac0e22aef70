"""Encoding of responses as ``muster.v1`` messages; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator.runtime.loop.slices import Steps
from coordinator.service.wire.answer_slices import make_rows
from coordinator.service.wire.error_statuses import encode_error
from model.errors import ErrorCode
from model.log.records import TopicPartitions
from model.responses.groups import NamedTopicPartitions
from model.responses.offsets import FetchedOffset, FetchedTopic, OffsetCommitResponse, TopicResult
from model.topics import TopicImage
from muster.v1 import types_pb2

NO_OFFSET = -1
"""Kafka's offset for none. Other negative offsets can be committed and are returned."""


def encode_assignment(
    assignment: Sequence[TopicPartitions],
    image: TopicImage,
    tokens: Sequence[Sequence[int]] = (),
) -> types_pb2.PartitionSet:
    """Encode an assignment, with the names of the topics that still exist.

    ``tokens`` are the fencing tokens of the partitions of each topic, if it has any.
    """
    topics = []
    for index, entry in enumerate(assignment):
        topic = image.by_id.get(entry.topic_id)
        topics.append(
            types_pb2.TopicPartitions(
                topic_name="" if topic is None else topic.name,
                topic_id=entry.topic_id,
                partitions=entry.partitions,
                tokens=tokens[index] if tokens else (),
            )
        )
    return types_pb2.PartitionSet(topics=topics)


def encode_named(topics: Iterable[NamedTopicPartitions]) -> list[types_pb2.TopicPartitions]:
    """Encode partitions of topics whose names are in the response."""
    return [
        types_pb2.TopicPartitions(
            topic_name=entry.topic_name,
            topic_id=entry.topic_id,
            partitions=entry.partitions,
            tokens=entry.tokens,
        )
        for entry in topics
    ]


def encode_failures(response: OffsetCommitResponse) -> list[types_pb2.TopicFailures]:
    """Encode the failed partitions of a commit; empty if all were committed."""
    return [failures for topic in response.topics if (failures := _encode_topic(topic)) is not None]


def _encode_topic(topic: TopicResult) -> types_pb2.TopicFailures | None:
    failed = [
        types_pb2.PartitionFailure(partition=result.partition, error=encode_error(result.error, ""))
        for result in topic.partitions
        if result.error is not ErrorCode.NONE
    ]
    if not failed:
        return None
    return types_pb2.TopicFailures(
        topic_name=topic.name or "", topic_id=topic.topic_id or b"", partitions=failed
    )


def encode_fetched(topic: FetchedTopic) -> Steps[types_pb2.CommittedTopic]:
    """Encode the committed offsets of one topic."""
    encoded = types_pb2.CommittedTopic(topic_name=topic.name or "", topic_id=topic.topic_id or b"")
    yield from make_rows(encoded.partitions.extend, _encode_offset, topic.partitions)
    return encoded


def _encode_offset(offset: FetchedOffset) -> types_pb2.CommittedOffset:
    failed = offset.error is not ErrorCode.NONE
    return types_pb2.CommittedOffset(
        partition=offset.partition,
        offset=None if offset.offset == NO_OFFSET else offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error=encode_error(offset.error, "") if failed else None,
    )
