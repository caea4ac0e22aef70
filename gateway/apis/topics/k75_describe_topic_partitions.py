"""DescribeTopicPartitions (75), version 0: describes partitions page by page (KIP-966).

Needs DESCRIBE on the topic; a request for all topics leaves unauthorized ones out. Topics are
sorted by name. A page ends at the partition limit, and the cursor says where the next one starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import Any, Final, NamedTuple

from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.authorized_operations import compute_authorized_operations, may_see
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, LongAnswer, compute_each, pace, reply_in_slices
from gateway.topic_requests import find_topic_by_name
from gateway.topics.topic_catalogue import PartitionKey
from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from model.topics import Topic

KEY = 75
wire = response_schema(KEY)

_NAME: Final = attrgetter("name")
PARTITIONS_PER_RESPONSE_MAX: Final = 2_000
"""Kafka's ``max.request.partition.size.limit``."""
TOPICS_SLICE: Final = 300
"""Topics described in one iteration, about 30 µs each with their authorized operations."""


class _Start(NamedTuple):
    """The position where the page starts."""

    name: str
    partition: int


def handle(context: RequestContext, request: Any) -> None:
    """Describe one page."""
    reply_in_slices(context, _describe(context, request))


def _describe(context: RequestContext, request: Any) -> Steps[Any]:
    names = yield from _sort_names(request.topics)
    cursor = request.cursor
    start = _Start("", 0) if cursor is None else _Start(cursor.topic_name, cursor.partition_index)
    if start.partition < 0 or (cursor is not None and names and start.name not in names):
        refused = yield from compute_each(
            lambda topic: _make_failed(topic, ErrorCode.INVALID_REQUEST), request.topics
        )
        return _make_answer(refused)
    if names:
        found: Iterator[_Found] = (_find(context, name) for name in names if name >= start.name)
    else:
        found = _find_all(context, start.name)
    limit = max(min(request.response_partition_limit, PARTITIONS_PER_RESPONSE_MAX), 1)
    page = yield from _make_page(context, found, start, limit)
    return page


def _sort_names(topics: Sequence[Any]) -> Steps[list[str]]:
    """The distinct topic names in ascending order."""
    parts = []
    for begin in range(0, len(topics), SLICE):
        parts.append(sorted(map(_NAME, topics[begin : begin + SLICE])))
        if begin:
            yield
    names: list[str] = []
    for name, is_slice_done in pace(merge(*parts), SLICE):
        if not names or name != names[-1]:
            names.append(name)
        if is_slice_done:
            yield
    return names


class _Found(NamedTuple):
    """A topic, or the error it gets instead."""

    name: str
    topic: Topic | None
    error: ErrorCode


def _find(context: RequestContext, name: str) -> _Found:
    image = context.node.topics.image
    return _Found(name, *find_topic_by_name(context, image, name, Operation.DESCRIBE))


def _find_all(context: RequestContext, first: str) -> Iterator[_Found]:
    by_name = context.node.topics.image.by_name
    for name in sorted(name for name in by_name if name >= first):
        if may_see(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
            yield _Found(name, by_name[name], ErrorCode.NONE)


def _make_page(
    context: RequestContext, found: Iterator[_Found], start: _Start, limit: int
) -> Steps[Any]:
    long = LongAnswer(context)
    topics: list[Any] = []
    cursor = None
    left = limit
    for (name, topic, error), is_slice_done in pace(found, TOPICS_SLICE):
        if is_slice_done:
            yield
        first = start.partition if name == start.name else 0
        partitions = topic.partitions if topic is not None else 0
        if left == 0:
            cursor = wire.Cursor(topic_name=name, partition_index=first)
            break
        last = min(partitions, first + left)
        topics.append(_make_topic(context, name, topic, error, range(first, last)))
        left -= max(last - first, 0)
        if last < partitions and last > first:
            cursor = wire.Cursor(topic_name=name, partition_index=last)
            break
    source = wire.DescribeTopicPartitionsResponseTopic
    rows = yield from long.encode(source, ("topics",), len(topics), topics)
    return wire.DescribeTopicPartitionsResponse(throttle_time=0, topics=rows, next_cursor=cursor)


def _make_topic(
    context: RequestContext, name: str, topic: Topic | None, error: ErrorCode, page: range
) -> Any:
    may_know = error != ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return wire.DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic.topic_id if topic is not None else None,
        partitions=[_make_partition(context, topic, number) for number in page] if topic else [],
        topic_authorized_operations=compute_authorized_operations(
            context, ResourceType.TOPIC, name, may_know
        ),
    )


def _make_partition(context: RequestContext, topic: Topic, partition: int) -> Any:
    leader = context.node.topics.leader_of(PartitionKey(topic.topic_id, partition))
    own = context.node.settings.node_id
    is_own = leader.node_id is None
    return wire.DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,
        partition_index=partition,
        leader_id=own if is_own else leader.node_id,
        leader_epoch=leader.epoch,
        replica_nodes=(own,) if is_own else leader.replicas,
        isr_nodes=(own,) if is_own else leader.in_sync,
        eligible_leader_replicas=(),
        last_known_elr=(),
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every topic."""
    return _make_answer([_make_failed(topic, code) for topic in request.topics])


def _make_failed(topic: Any, code: ErrorCode) -> Any:
    return wire.DescribeTopicPartitionsResponseTopic(
        error_code=code, name=topic.name, topic_id=None, partitions=[]
    )


def _make_answer(topics: list[Any]) -> Any:
    return wire.DescribeTopicPartitionsResponse(throttle_time=0, topics=topics)


API = Api(
    key=KEY,
    name="DescribeTopicPartitions",
    versions=range(1),
    handler=handle,
    failed=failed,
    is_large=True,
)
