"""TxnOffsetCommit (28), versions 0 to 5: offsets that become visible when a transaction ends.

From version 3 on the producer may say for which member it commits. Needs WRITE on the
transactional id, READ on the group and on each topic; a topic that the caller may not read fails
by itself. That the transaction has the group's partition in it is not verified with its
coordinator, which is not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation, ResourceType
from coordinator.runtime.slices import Steps
from gateway.api import Api, RequestContext
from gateway.apis.refused_commits import (
    Refused,
    compute_refused_topic,
    is_too_large,
    refuse_in_slices,
)
from gateway.long_answers import reply_in_slices
from gateway.schema import response_schema
from model.commands import TopicOffsets, TxnOffsetCommit
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId, ProducerId, TopicName
from model.records import PartitionOffset
from model.responses import OffsetCommitResponse, PartitionResult

KEY = 28
wire = response_schema(KEY)

_NUMBER: Final = attrgetter("partition_index")

Found = tuple[Any, tuple[PartitionResult, ...]]
"""A topic as it was asked for, and the results of its partitions."""


def handle(context: RequestContext, request: Any) -> None:
    """Commit what the caller may commit; the answer has every topic in the order asked."""
    denied = _find_denied(context, request)
    if is_too_large(request.topics):
        reply_in_slices(context, _refuse_too_large(context, request, denied))
        return
    if denied is not None:
        context.reply(failed(context, request, denied, ""))
        return
    is_allowed = [
        context.authorized(Operation.READ, ResourceType.TOPIC, topic.name)
        for topic in request.topics
    ]
    wanted = tuple(
        _decode_topic(topic) for topic, may in zip(request.topics, is_allowed, strict=True) if may
    )

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            image = context.node.coordinator.image
            results = [
                compute_refused_topic(image, topic, answer.code).partitions for topic in wanted
            ]
        else:
            assert isinstance(answer, OffsetCommitResponse)
            results = [topic.partitions for topic in answer.topics]
        found = iter(results)
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        rows = [
            next(found) if may else _fail_rows(_decode_topic(topic), code)
            for topic, may in zip(request.topics, is_allowed, strict=True)
        ]
        context.reply(_make(_without_nothing(context, zip(request.topics, rows, strict=True))))

    context.submit(_make_command(context, request, wanted), on_answer)


def _find_denied(context: RequestContext, request: Any) -> ErrorCode | None:
    """Why the caller may not commit at all."""
    if not context.authorized(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not context.authorized(Operation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None


def _refuse_too_large(
    context: RequestContext, request: Any, denied: ErrorCode | None
) -> Steps[Any]:
    made = yield from refuse_in_slices(
        context,
        _find_refused(context, request, denied),
        lambda topic, rows: wire.TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows),
        wire.TxnOffsetCommitResponsePartition,
    )
    return wire.TxnOffsetCommitResponse(throttle_time=0, topics=made)


def _find_refused(
    context: RequestContext, request: Any, denied: ErrorCode | None
) -> Iterator[Refused]:
    for topic in request.topics:
        may = context.authorized(Operation.READ, ResourceType.TOPIC, topic.name)
        code = denied if may or denied is not None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        rows = topic.partitions
        yield Refused(TopicName(topic.name), None, map(_NUMBER, rows), len(rows), code)


def _make_command(
    context: RequestContext, request: Any, topics: tuple[TopicOffsets, ...]
) -> TxnOffsetCommit:
    epoch = getattr(request, "generation_id", -1)
    instance_id = getattr(request, "group_instance_id", None)
    return TxnOffsetCommit(
        context.caller,
        GroupId(request.group_id),
        ProducerId(request.producer_id),
        request.producer_epoch,
        topics,
        MemberId(getattr(request, "member_id", "")),
        None if epoch == -1 else epoch,
        None if instance_id is None else InstanceId(instance_id),
    )


def _decode_topic(topic: Any) -> TopicOffsets:
    return TopicOffsets(
        TopicName(topic.name), None, tuple(_decode_offset(row) for row in topic.partitions)
    )


def _decode_offset(row: Any) -> PartitionOffset:
    leader_epoch = getattr(row, "committed_leader_epoch", -1)
    return PartitionOffset(
        row.partition_index,
        row.committed_offset,
        None if leader_epoch < 0 else leader_epoch,
        row.committed_metadata or "",
    )


def _fail_rows(topic: TopicOffsets, code: ErrorCode) -> tuple[PartitionResult, ...]:
    return tuple(PartitionResult(row.partition, code) for row in topic.partitions)


def _without_nothing(context: RequestContext, found: Iterable[Found]) -> list[Found]:
    """Kafka leaves out a topic that is there and of which no partition is named."""
    by_name = context.node.coordinator.image.by_name
    return [(topic, rows) for topic, rows in found if rows or TopicName(topic.name) not in by_name]


def _make(found: Iterable[Found]) -> Any:
    return wire.TxnOffsetCommitResponse(
        throttle_time=0,
        topics=[
            wire.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    wire.TxnOffsetCommitResponsePartition(
                        partition_index=row.partition, error_code=row.error
                    )
                    for row in rows
                ],
            )
            for topic, rows in found
        ],
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """An error for every partition."""
    return _make((topic, _fail_rows(_decode_topic(topic), code)) for topic in request.topics)


API = Api(key=KEY, name="TxnOffsetCommit", versions=range(6), handler=handle, failed=failed)
