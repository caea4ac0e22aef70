"""Decoding of reports of end offsets; pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator.runtime.loop.slices import Steps
from coordinator.service.wire.answer_slices import SLICE
from coordinator.service.wire.decode import decode_topic
from model.commands.offsets import COMMIT_PARTITIONS_MAX
from model.errors import InvalidRequest
from model.ids import TopicId, TopicName
from muster.v1 import group_pb2

PARTITIONS_MAX: Final = COMMIT_PARTITIONS_MAX
"""The most partitions of one report, and the most topics."""


class TopicEnds(NamedTuple):
    """Where partitions of one topic end; the id takes precedence over the name."""

    name: TopicName | None
    topic_id: TopicId | None
    ends: list[tuple[int, int]]


def decode_report(request: group_pb2.ReportEndOffsetsRequest) -> Steps[list[TopicEnds]]:
    """Decode a report, in slices; raises ``InvalidRequest`` or ``InvalidTopic``."""
    topics = request.topics
    if len(topics) > PARTITIONS_MAX:
        raise InvalidRequest(f"a report may have at most {PARTITIONS_MAX} topics: split the report")
    count = sum(len(topic.partitions) for topic in topics)
    if count > PARTITIONS_MAX:
        raise InvalidRequest(
            f"a report may have at most {PARTITIONS_MAX} partitions: split the report"
        )
    if not topics:
        raise InvalidRequest("a report must have at least one topic")
    decoded: list[TopicEnds] = []
    left = SLICE
    for topic in topics:
        if not topic.partitions:
            raise InvalidRequest("a topic of a report must have at least one partition")
        ends: list[tuple[int, int]] = []
        decoded.append(TopicEnds(*decode_topic(topic), ends))
        for entry in topic.partitions:
            ends.append(_decode_end(entry))
            left -= 1
            if left <= 0:
                left = SLICE
                yield
    return decoded


def _decode_end(entry: group_pb2.PartitionEndOffset) -> tuple[int, int]:
    if entry.partition < 0:
        raise InvalidRequest(f"partition {entry.partition} is below 0")
    if entry.end_offset < 0:
        raise InvalidRequest(f"end offset {entry.end_offset} is below 0")
    return entry.partition, entry.end_offset
