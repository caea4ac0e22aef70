"""TxnOffsetCommit (28), versions 0 to 5: commits offsets as part of a transaction.

From version 3 the request may carry the member that it commits for. Needs WRITE on the
transactional id, and READ on the group and on each topic; an unauthorized topic fails by itself.
Whether the transaction contains the group's partition is not verified (KIP-890): the transaction
coordinator is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.api import Api, Decoder, LongDecoder, RequestContext
from gateway.codec.decoding import decode
from gateway.codec.decoding_in_slices import LEAST_BYTES, decode_in_slices
from gateway.codec.kio_schema import request_type, response_schema
from gateway.commits.offset_commit_wire import convert_topics
from gateway.commits.refused_commits import (
    Refused,
    compute_refused_topic,
    is_too_large,
    refuse_in_slices,
)
from gateway.long_answers import reply_in_slices
from model.access.acls import Operation, ResourceType
from model.commands.offsets import TopicOffsets
from model.commands.transactions import TxnOffsetCommit
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId, ProducerId
from model.responses.offsets import OffsetCommitResponse, PartitionResult

KEY = 28
wire = response_schema(KEY)

FIRST_ADDING_VERSION: Final = 5
"""It adds the group's partition to the transaction by itself (KIP-890)."""

_ANSWER_SLICE: Final = 500
"""Topics and partitions of a response built in one iteration, about 5 µs each."""

Results = tuple[PartitionResult, ...]


class Commit(NamedTuple):
    """The request, with the field names of Kafka's schema; ``topics`` alone has no sentinels."""

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topics: tuple[TopicOffsets, ...]


def handle(context: RequestContext, request: Commit) -> None:
    """Commit the authorized topics; the response has the topics in request order."""
    denied = _find_denied(context, request)
    if is_too_large(request.topics):
        reply_in_slices(context, _refuse_too_large(context, request, denied))
        return
    if denied is not None:
        context.reply(failed(context, request, denied, ""))
        return
    denied_topics = _find_denied_topics(context, request.topics)
    wanted = tuple(
        [topic for number, topic in enumerate(request.topics) if number not in denied_topics]
        if denied_topics
        else request.topics
    )
    context.submit(
        _make_command(context, request, wanted),
        lambda answer: reply_in_slices(context, _answer(context, request, denied_topics, answer)),
    )


def _find_denied_topics(context: RequestContext, topics: Sequence[TopicOffsets]) -> set[int]:
    """The positions of the topics that the caller may not read."""
    if context.node.allows_all:
        return set()
    return {number for number, topic in enumerate(topics) if not _may_read(context, topic)}


def _may_read(context: RequestContext, topic: TopicOffsets) -> bool:
    assert topic.name is not None, "topics have names here"
    return context.authorized(Operation.READ, ResourceType.TOPIC, topic.name)


def _answer(
    context: RequestContext, request: Commit, denied_topics: set[int], answer: Answer
) -> Steps[Any]:
    """Build the response in request order; as in Kafka, an existing topic without partitions is
    left out."""
    image = context.node.coordinator.image
    results = iter(answer.topics if isinstance(answer, OffsetCommitResponse) else ())
    made = []
    left = _ANSWER_SLICE
    for number, topic in enumerate(request.topics):
        if number in denied_topics:
            rows = _fail_rows(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif isinstance(answer, GroupError):
            rows = compute_refused_topic(image, topic, answer.code).partitions
        else:
            rows = next(results).partitions
        if rows or topic.name not in image.by_name:
            made.append(_make_topic(topic, rows))
        left -= 1 + len(rows)
        if left <= 0:
            left = _ANSWER_SLICE
            yield
    return wire.TxnOffsetCommitResponse(throttle_time=0, topics=made)


def _find_denied(context: RequestContext, request: Commit) -> ErrorCode | None:
    """The authorization error for the whole request, if any."""
    if not context.authorized(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not context.authorized(Operation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None


def _refuse_too_large(
    context: RequestContext, request: Commit, denied: ErrorCode | None
) -> Steps[Any]:
    made = yield from refuse_in_slices(
        context,
        _find_refused(context, request, denied),
        lambda topic, rows: wire.TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows),
        wire.TxnOffsetCommitResponsePartition,
    )
    return wire.TxnOffsetCommitResponse(throttle_time=0, topics=made)


def _find_refused(
    context: RequestContext, request: Commit, denied: ErrorCode | None
) -> Iterator[Refused]:
    for topic in request.topics:
        may = _may_read(context, topic)
        code = denied if may or denied is not None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        rows = topic.partitions
        yield Refused(topic.name, None, iter(rows), len(rows), code)


def _make_command(
    context: RequestContext, request: Commit, topics: tuple[TopicOffsets, ...]
) -> TxnOffsetCommit:
    epoch, instance_id = request.generation_id, request.group_instance_id
    return TxnOffsetCommit(
        context.caller,
        GroupId(request.group_id),
        ProducerId(request.producer_id),
        request.producer_epoch,
        topics,
        MemberId(request.member_id),
        None if epoch == -1 else epoch,
        None if instance_id is None else InstanceId(instance_id),
        request.transactional_id,
        adds_partition=context.version >= FIRST_ADDING_VERSION,
    )


def make_decoder(version: int, elements: int) -> Decoder:
    """A decoder of this version; ``elements`` bounds topics and partitions."""
    request = request_type(KEY, version)

    def read(data: bytes, pos: int, end: int) -> Commit:
        return run_at_once(_convert(decode(request, data, pos, end, elements)))

    return read


def make_long_decoder(version: int, elements: int) -> LongDecoder:
    """The same decoder in time slices."""
    request = request_type(KEY, version)

    def read(data: bytes, pos: int, end: int) -> Steps[Commit]:
        decoded = yield from decode_in_slices(request, data, pos, end, elements)
        return (yield from _convert(decoded))

    return LongDecoder(LEAST_BYTES, read)


def _convert(request: Any) -> Steps[Commit]:
    topics = yield from convert_topics(request.topics)
    return Commit(
        request.transactional_id,
        request.group_id,
        request.producer_id,
        request.producer_epoch,
        getattr(request, "generation_id", -1),
        getattr(request, "member_id", ""),
        getattr(request, "group_instance_id", None),
        topics,
    )


def _fail_rows(topic: TopicOffsets, code: ErrorCode) -> Results:
    return tuple(PartitionResult(partition, code) for partition in topic.partitions)


def _make_topic(topic: TopicOffsets, rows: Results) -> Any:
    make = wire.TxnOffsetCommitResponsePartition
    partitions = [make(partition_index=row.partition, error_code=row.error) for row in rows]
    return wire.TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions)


def failed(context: RequestContext, request: Commit, code: ErrorCode, message: str) -> Any:
    """Fail every partition."""
    topics = [_make_topic(topic, _fail_rows(topic, code)) for topic in request.topics]
    return wire.TxnOffsetCommitResponse(throttle_time=0, topics=topics)


API = Api(
    key=KEY,
    name="TxnOffsetCommit",
    versions=range(6),
    handler=handle,
    failed=failed,
    decode=make_decoder,
    decode_long=make_long_decoder,
)
