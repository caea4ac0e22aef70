"""Commits that are refused as a whole: each partition has the error, but for those unknown anyway.

Kafka's broker sorts out topics and partitions that do not exist before it asks the coordinator.
"""

from __future__ import annotations

from model.commands import TopicOffsets
from model.errors import ErrorCode
from model.responses import PartitionResult, TopicResult
from model.topics import TopicImage


def compute_refused_topic(image: TopicImage, topic: TopicOffsets, code: ErrorCode) -> TopicResult:
    """The results of a topic of a commit that failed with ``code``."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    count = 0
    if topic.topic_id is not None:
        known = image.by_id.get(topic.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if known is None else unknown
    else:
        known = None if topic.name is None else image.by_name.get(topic.name)
    if known is not None:
        count = known.partitions
    results = tuple(
        PartitionResult(row.partition, code if 0 <= row.partition < count else unknown)
        for row in topic.partitions
    )
    return TopicResult(topic.name, topic.topic_id, results)
