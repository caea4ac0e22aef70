"""Refuses whole commits: each partition gets the error, unless it does not exist.

Like Kafka's broker, which removes unknown topics and partitions before it asks the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.runtime.loop.slices import Steps
from gateway.api import RequestContext
from gateway.long_answers import LongAnswer
from model.commands.offsets import COMMIT_PARTITIONS_MAX, TopicOffsets
from model.errors import ErrorCode
from model.ids import TopicId, TopicName
from model.responses.offsets import PartitionResult, TopicResult
from model.topics import TopicImage


def compute_refused_topic(image: TopicImage, topic: TopicOffsets, code: ErrorCode) -> TopicResult:
    """The results of one topic of a commit that failed with ``code``."""
    refusal = _compute_refusal(image, topic.name, topic.topic_id, code)
    results = tuple(
        PartitionResult(partition, refusal.find_code(partition)) for partition in topic.partitions
    )
    return TopicResult(topic.name, topic.topic_id, results)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """``code`` for the first ``count`` partitions of a topic, ``unknown`` for others."""

    code: ErrorCode
    unknown: ErrorCode
    count: int

    def find_code(self, partition: int) -> ErrorCode:
        return self.code if 0 <= partition < self.count else self.unknown


def _compute_refusal(
    image: TopicImage, name: TopicName | None, topic_id: TopicId | None, code: ErrorCode
) -> _Refusal:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic_id is not None:
        known = image.by_id.get(topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if known is None else unknown
    else:
        known = None if name is None else image.by_name.get(name)
    return _Refusal(code, unknown, 0 if known is None else known.partitions)


# ---------------------------------------------------------------------- of very many partitions


def is_too_large(topics: Sequence[Any]) -> bool:
    """Whether the commit names more partitions than the coordinator accepts.

    ``topics`` may come from a request of either API.
    """
    return (
        len(topics) > COMMIT_PARTITIONS_MAX
        or sum([len(topic.partitions) for topic in topics]) > COMMIT_PARTITIONS_MAX
    )


@dataclass(frozen=True, slots=True)
class Refused:
    """A topic of too large a commit. ``denied`` is the error if it is not authorized."""

    name: TopicName | None
    topic_id: TopicId | None
    partitions: Iterable[int]
    count: int
    denied: ErrorCode | None


def refuse_in_slices(
    context: RequestContext,
    topics: Iterator[Refused],
    make_topic: Callable[[Refused, Any], Any],
    row_class: Any,
) -> Steps[list[Any]]:
    """The topics of the response, each partition with UNKNOWN_SERVER_ERROR.

    Kafka returns this error for too large a batch. ``make_topic`` takes a topic and its rows,
    instances of ``row_class``.
    """
    image = context.node.coordinator.image
    long = LongAnswer(context)
    made = []
    for topic in topics:
        if topic.denied is not None:
            refusal = _Refusal(topic.denied, topic.denied, 0)
        else:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            refusal = _compute_refusal(image, topic.name, topic.topic_id, code)
        rows = (
            row_class(partition_index=number, error_code=refusal.find_code(number))
            for number in topic.partitions
        )
        encoded = yield from long.encode(row_class, ("topics", "partitions"), topic.count, rows)
        made.append(make_topic(topic, encoded))
        long.count()
        yield from long.rest()
    return made
