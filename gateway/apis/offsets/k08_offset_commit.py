"""OffsetCommit (8), versions 2 to 10.

Members of a consumer group need version 9 or later; version 10 names topics by id. Needs READ on
the group and on each topic; an unauthorized topic fails by itself. The member id alone identifies
the member: the instance id is not checked (KAFKA-14201).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.commits.commit_templates import keep_template
from gateway.commits.offset_commit_wire import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_TOPIC_ID_VERSION,
    Commit,
    encode_commit_response,
    make_commit_decoder,
    make_long_commit_decoder,
)
from gateway.commits.refused_commits import (
    Refused,
    compute_refused_topic,
    is_too_large,
    refuse_in_slices,
)
from gateway.long_answers import reply_in_slices
from model.access.acls import Operation, ResourceType
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.errors import ErrorCode, GroupError
from model.ids import ZERO_TOPIC_ID, GroupId, InstanceId, MemberId
from model.responses.offsets import OffsetCommitResponse, PartitionResult, TopicResult

KEY = 8
named = response_schema(KEY, 9)
"""The last version that names topics by name."""
by_id = response_schema(KEY)

FIRST_CONSUMER_PROTOCOL_VERSION: Final = 9
LONGEST_RETENTION_MS: Final = 2**62
"""Far above any sensible value; commit time plus a longer one would overflow the record's int64."""


def handle(context: RequestContext, request: Commit) -> None:
    """Commit the authorized topics; the response has every topic, in request order."""
    if is_too_large(request.topics):
        reply_in_slices(context, _refuse_too_large(context, request))
        return
    if not context.authorized(Operation.READ, ResourceType.GROUP, request.group_id):
        _reply(context, _fail_all(request.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    denied = set() if context.node.allows_all else _find_denied(context, request.topics)
    if denied:
        _commit_the_rest(context, request, denied)
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, OffsetCommitResponse):
            _reply(context, answer.topics)
        else:
            assert isinstance(answer, GroupError)
            _reply(context, _refuse_all(context, request.topics, answer.code))

    command = make_command(context, request, request.topics)
    if context.raw:
        keep_template(context, request, command)
    context.submit(command, on_answer)


def make_command(
    context: RequestContext, request: Commit, topics: tuple[TopicOffsets, ...]
) -> OffsetCommit:
    """The command that commits ``topics`` of a request, with the wire's sentinels resolved."""
    epoch = request.generation_id_or_member_epoch
    instance_id, retention_ms = request.group_instance_id, request.retention_ms
    return OffsetCommit(
        context.caller,
        GroupId(request.group_id),
        MemberId(request.member_id),
        None if epoch == -1 else epoch,
        topics,
        None if instance_id is None else InstanceId(instance_id),
        None if retention_ms == -1 else min(retention_ms, LONGEST_RETENTION_MS),
        context.version >= FIRST_CONSUMER_PROTOCOL_VERSION,
    )


def _commit_the_rest(context: RequestContext, request: Commit, denied: set[int]) -> None:
    """Commit all topics but those at the positions ``denied``, which fail by themselves."""
    allowed = tuple(topic for number, topic in enumerate(request.topics) if number not in denied)

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, OffsetCommitResponse):
            results = iter(answer.topics)
        else:
            assert isinstance(answer, GroupError)
            results = iter(_refuse_all(context, allowed, answer.code))
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        in_order = [
            _fail(topic, code) if number in denied else next(results)
            for number, topic in enumerate(request.topics)
        ]
        _reply(context, in_order)

    context.submit(make_command(context, request, allowed), on_answer)


def _find_denied(context: RequestContext, topics: Sequence[TopicOffsets]) -> set[int]:
    """The positions of the topics that the caller may not read."""
    return {number for number, topic in enumerate(topics) if not _may_read(context, topic)}


def _may_read(context: RequestContext, topic: TopicOffsets) -> bool:
    name = topic.name
    if name is None:
        known = context.node.coordinator.image.by_id.get(topic.topic_id or ZERO_TOPIC_ID)
        if known is None:
            # An unknown topic id: the coordinator answers UNKNOWN_TOPIC_ID.
            return True
        name = known.name
    return context.authorized(Operation.READ, ResourceType.TOPIC, name)


def _refuse_too_large(context: RequestContext, request: Commit) -> Steps[Any]:
    wire = by_id if context.version >= FIRST_TOPIC_ID_VERSION else named
    made = yield from refuse_in_slices(
        context,
        _find_refused(context, request),
        lambda topic, rows: _make_refused(topic, rows, wire),
        wire.OffsetCommitResponsePartition,
    )
    return wire.OffsetCommitResponse(throttle_time=0, topics=made)


def _find_refused(context: RequestContext, request: Commit) -> Iterator[Refused]:
    may = context.authorized(Operation.READ, ResourceType.GROUP, request.group_id)
    for topic in request.topics:
        denied = None if may else ErrorCode.GROUP_AUTHORIZATION_FAILED
        if may and not _may_read(context, topic):
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        rows = topic.partitions
        yield Refused(topic.name, topic.topic_id, iter(rows), len(rows), denied)


def _make_refused(topic: Refused, rows: Any, wire: Any) -> Any:
    if wire is named:
        return named.OffsetCommitResponseTopic(name=topic.name or "", partitions=rows)
    topic_id = topic.topic_id or ZERO_TOPIC_ID
    return by_id.OffsetCommitResponseTopic(topic_id=topic_id, partitions=rows)


def _fail(topic: TopicOffsets, code: ErrorCode) -> TopicResult:
    return TopicResult(
        topic.name,
        topic.topic_id,
        tuple(PartitionResult(partition, code) for partition in topic.partitions),
    )


def _fail_all(topics: Sequence[TopicOffsets], code: ErrorCode) -> list[TopicResult]:
    return [_fail(topic, code) for topic in topics]


def _refuse_all(
    context: RequestContext, topics: Sequence[TopicOffsets], code: ErrorCode
) -> list[TopicResult]:
    """Fail every partition with the coordinator's ``code``, or as unknown if it does not exist."""
    image = context.node.coordinator.image
    return [compute_refused_topic(image, topic, code) for topic in topics]


def _reply(context: RequestContext, results: Sequence[TopicResult]) -> None:
    if context.version >= FIRST_FLEXIBLE_VERSION:
        context.reply_encoded(encode_commit_response(results, context.version))
    else:
        context.reply(_make_named(results))


def _make_named(results: Sequence[TopicResult]) -> Any:
    return named.OffsetCommitResponse(
        throttle_time=0,
        topics=[
            named.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    named.OffsetCommitResponsePartition(
                        partition_index=result.partition, error_code=result.error
                    )
                    for result in topic.partitions
                ],
            )
            for topic in results
        ],
    )


def failed(context: RequestContext, request: Commit, code: ErrorCode, message: str) -> Any:
    """Fail every partition."""
    results = _fail_all(request.topics, code)
    if context.version < FIRST_FLEXIBLE_VERSION:
        return _make_named(results)
    return encode_commit_response(results, context.version)


API = Api(
    key=KEY,
    name="OffsetCommit",
    versions=range(2, 11),
    handler=handle,
    failed=failed,
    decode=make_commit_decoder,
    decode_long=make_long_commit_decoder,
    is_repeated=True,
)
