"""Responses of committing, fetching and deleting offsets."""

from __future__ import annotations

from model.errors import ErrorCode
from model.ids import GroupId, TopicId, TopicName
from model.value import value


@value
class PartitionResult:
    """The result for one partition of a commit."""

    partition: int
    error: ErrorCode


@value
class TopicResult:
    """Results of a commit for one topic; name and id are ``None`` if unknown."""

    name: TopicName | None
    topic_id: TopicId | None
    partitions: tuple[PartitionResult, ...]


@value
class OffsetCommitResponse:
    topics: tuple[TopicResult, ...]


@value
class FetchedOffset:
    """A committed offset; ``offset`` is -1 if there is none."""

    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    error: ErrorCode = ErrorCode.NONE


@value
class FetchedTopic:
    name: TopicName | None
    topic_id: TopicId | None
    partitions: tuple[FetchedOffset, ...]


@value
class OffsetFetchResponse:
    group_id: GroupId
    topics: tuple[FetchedTopic, ...]


@value
class OffsetDeleteResponse:
    topics: tuple[TopicResult, ...]
