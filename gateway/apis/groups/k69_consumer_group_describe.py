"""ConsumerGroupDescribe (69), versions 0 and 1: describes groups of the consumer protocol.

Needs DESCRIBE on the group and on every topic that its members subscribe to, own or are assigned:
one unauthorized topic fails the group, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from operator import not_
from typing import Any

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.authorized_operations import NOT_REQUESTED, compute_authorized_operations
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import (
    DECISIONS_SLICE,
    LongAnswer,
    compute_each,
    handle_in_slices,
    pace,
    reply_in_slices,
)
from model.access.acls import Operation, ResourceType
from model.commands.groups import ConsumerGroupDescribe
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, TopicName
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedMember,
    NamedTopicPartitions,
)

KEY = 69
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """Describe the groups, in request order."""
    handle_in_slices(context, _describe_all(context, request))


def _describe_all(context: RequestContext, request: Any) -> Steps[None]:
    codes = yield from compute_each(partial(_check, context), request.group_ids)
    asked = tuple(map(GroupId, compress(request.group_ids, map(not_, codes))))

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
            return
        assert isinstance(answer, ConsumerGroupDescribeResponse)
        reply_in_slices(context, _make(context, request, codes, answer.groups))

    context.submit(ConsumerGroupDescribe(context.caller, asked), on_answer)


def _make(
    context: RequestContext,
    request: Any,
    codes: Sequence[ErrorCode],
    described: Iterable[DescribedConsumerGroup],
) -> Steps[Any]:
    """Build the response; ``described`` has the groups whose code in ``codes`` is NONE."""
    long = LongAnswer(context)
    found = iter(described)
    groups = []
    for group_id, code in zip(request.group_ids, codes, strict=True):
        if code:
            groups.append(_refuse(group_id, code))
        else:
            group = next(found)
            with_operations = request.include_authorized_operations
            groups.append((yield from _describe(context, long, group, with_operations)))
        long.count()
        yield from long.rest()
    rows = yield from long.encode(wire.DescribedGroup, ("groups",), len(groups), groups)
    return wire.ConsumerGroupDescribeResponse(throttle_time=0, groups=rows)


def _check(context: RequestContext, group_id: str) -> ErrorCode:
    if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID


def _refuse(group_id: str, code: ErrorCode, message: str | None = None) -> Any:
    return wire.DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
        authorized_operations=NOT_REQUESTED,
    )


def _find_topics(long: LongAnswer, group: DescribedConsumerGroup) -> Steps[set[TopicName]]:
    names: set[TopicName] = set()
    for members in long.take(group.members):
        for member in members:
            names.update(member.subscribed_topic_names)
            for topics in (member.assignment, member.pending_revocation, member.target_assignment):
                names.update(topic.topic_name for topic in topics)
        yield from long.rest()
    return names


def _describe(
    context: RequestContext, long: LongAnswer, group: DescribedConsumerGroup, with_operations: bool
) -> Steps[Any]:
    if group.error:
        return _refuse(group.group_id, group.error, group.error_message)
    names = () if context.node.allows_all else (yield from _find_topics(long, group))
    for name, is_slice_done in pace(names, DECISIONS_SLICE):
        if not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            message = "Not authorized to describe a topic of the group."
            return _refuse(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
        if is_slice_done:
            yield
    return wire.DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
        members=(
            yield from long.encode(
                wire.Member, ("groups", "members"), len(group.members), map(_member, group.members)
            )
        ),
        authorized_operations=compute_authorized_operations(
            context, ResourceType.GROUP, group.group_id, with_operations
        ),
    )


def _member(member: DescribedMember) -> Any:
    return wire.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(_held(member)),
        target_assignment=_assignment(member.target_assignment),
        member_type=member.member_type,
    )


def _held(member: DescribedMember) -> list[NamedTopicPartitions]:
    """The owned partitions and those pending revocation, which Kafka reports together."""
    held = {topic.topic_id: topic for topic in member.assignment}
    for topic in member.pending_revocation:
        known = held.get(topic.topic_id)
        partitions = topic.partitions if known is None else known.partitions + topic.partitions
        held[topic.topic_id] = replace(topic, partitions=tuple(sorted(partitions)))
    return list(held.values())


def _assignment(topics: Sequence[NamedTopicPartitions]) -> Any:
    return wire.Assignment(
        topic_partitions=[
            wire.TopicPartitions(
                topic_id=topic.topic_id, topic_name=topic.topic_name, partitions=topic.partitions
            )
            for topic in topics
        ]
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every group."""
    groups = [_refuse(group_id, code, message) for group_id in request.group_ids]
    return wire.ConsumerGroupDescribeResponse(throttle_time=0, groups=groups)


API = Api(
    key=KEY,
    name="ConsumerGroupDescribe",
    versions=range(2),
    handler=handle,
    failed=failed,
    is_large=True,
)
