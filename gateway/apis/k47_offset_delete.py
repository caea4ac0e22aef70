"""OffsetDelete (47), version 0: offsets of topics that no member of the group subscribes to.

Needs DELETE on the group, and READ on each topic; one that the caller may not read fails by itself.
"""

from __future__ import annotations

from typing import Any

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.api import Api, RequestContext
from gateway.codec import response_schema
from model.commands import DeleteOffsets
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, TopicName
from model.responses import OffsetDeleteResponse, PartitionResult

KEY = 47
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """Delete what the caller may read; the answer has every topic in the order asked."""
    if not context.authorized(Operation.DELETE, ResourceType.GROUP, request.group_id):
        context.reply(_fail(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    topics = [
        (topic.name, tuple(row.partition_index for row in topic.partitions))
        for topic in request.topics
        if topic.partitions
    ]
    is_allowed = [
        context.authorized(Operation.READ, ResourceType.TOPIC, name) for name, _ in topics
    ]
    asked = tuple(
        (TopicName(name), partitions)
        for (name, partitions), may in zip(topics, is_allowed, strict=True)
        if may
    )

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply(_fail(answer.code))
            return
        assert isinstance(answer, OffsetDeleteResponse)
        found = iter(answer.topics)
        results = [
            _make_topic(name, next(found).partitions if may else _refuse(partitions))
            for (name, partitions), may in zip(topics, is_allowed, strict=True)
        ]
        context.reply(_make(ErrorCode.NONE, results))

    context.submit(DeleteOffsets(context.caller, GroupId(request.group_id), asked), on_answer)


def _refuse(partitions: tuple[int, ...]) -> tuple[PartitionResult, ...]:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return tuple(PartitionResult(partition, code) for partition in partitions)


def _make_topic(name: str, rows: tuple[PartitionResult, ...]) -> Any:
    return wire.OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            wire.OffsetDeleteResponsePartition(partition_index=row.partition, error_code=row.error)
            for row in rows
        ],
    )


def _make(code: ErrorCode, topics: Any) -> Any:
    return wire.OffsetDeleteResponse(error_code=code, throttle_time=0, topics=topics)


def _fail(code: ErrorCode) -> Any:
    return _make(code, ())


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """An error for the whole request."""
    return _fail(code)


API = Api(
    key=KEY, name="OffsetDelete", versions=range(1), handler=handle, failed=failed, is_large=True
)
