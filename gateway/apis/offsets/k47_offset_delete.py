"""OffsetDelete (47), version 0: deletes committed offsets of topics without subscribed members.

Needs DELETE on the group, and READ on each topic; an unauthorized topic fails by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, compute_each, handle_in_slices, pace, reply_in_slices
from model.access.acls import Operation, ResourceType
from model.commands.offsets import DeleteOffsets
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, TopicName
from model.responses.offsets import OffsetDeleteResponse, PartitionResult

KEY = 47
wire = response_schema(KEY)

_INDEX: Final = attrgetter("partition_index")


def handle(context: RequestContext, request: Any) -> None:
    """Delete the offsets of the authorized topics; the response has the topics in request order."""
    if not context.authorized(Operation.DELETE, ResourceType.GROUP, request.group_id):
        context.reply(_fail(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    handle_in_slices(context, _delete(context, request))


def _delete(context: RequestContext, request: Any) -> Steps[None]:
    topics = []
    for topic, is_slice_done in pace(request.topics, SLICE):
        if topic.partitions:
            topics.append((topic.name, tuple(map(_INDEX, topic.partitions))))
        if is_slice_done:
            yield
    is_allowed = yield from compute_each(
        lambda topic: context.authorized(Operation.READ, ResourceType.TOPIC, topic[0]), topics
    )
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
        rows = (
            (name, next(found).partitions if may else _refuse(partitions))
            for (name, partitions), may in zip(topics, is_allowed, strict=True)
        )
        reply_in_slices(context, _make_all(rows))

    context.submit(DeleteOffsets(context.caller, GroupId(request.group_id), asked), on_answer)


def _refuse(partitions: tuple[int, ...]) -> tuple[PartitionResult, ...]:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return tuple(PartitionResult(partition, code) for partition in partitions)


def _make_all(topics: Iterable[tuple[str, tuple[PartitionResult, ...]]]) -> Steps[Any]:
    made = []
    left = SLICE
    for name, rows in topics:
        partitions = []
        for row in rows:
            partitions.append(
                wire.OffsetDeleteResponsePartition(
                    partition_index=row.partition, error_code=row.error
                )
            )
            left -= 1
            if not left:
                left = SLICE
                yield
        made.append(wire.OffsetDeleteResponseTopic(name=name, partitions=partitions))
    return _make(ErrorCode.NONE, made)


def _make(code: ErrorCode, topics: Any) -> Any:
    return wire.OffsetDeleteResponse(error_code=code, throttle_time=0, topics=topics)


def _fail(code: ErrorCode) -> Any:
    return _make(code, ())


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the whole request."""
    return _fail(code)


API = Api(
    key=KEY, name="OffsetDelete", versions=range(1), handler=handle, failed=failed, is_large=True
)
