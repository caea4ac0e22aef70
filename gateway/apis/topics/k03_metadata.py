"""Metadata (3), versions 0 to 13: brokers, and topics by name, by id (from version 10) or all.

If any topic has an id, topics without one are ignored, as in Kafka; Java sends "" as the name with
each id. An unauthorized topic fails with TOPIC_AUTHORIZATION_FAILED, by id without its name, and is
left out of "all topics". Missing topics are created only with ``auto.create.topics.enable``. The
catalogue names the partition leaders. Needs DESCRIBE on each topic, and CREATE to create one.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.authorized_operations import NOT_REQUESTED, compute_authorized_operations, may_see
from gateway.brokers import compute_brokers
from gateway.codec.encoding import Encoded, compile_rows_writer
from gateway.codec.kio_schema import response_schema, response_type
from gateway.long_answers import (
    COMMANDS_SLICE,
    LongAnswer,
    handle_in_slices,
    pace,
    reply_in_slices,
    select_each,
)
from gateway.topic_requests import find_topic_by_id
from gateway.topics.topic_catalogue import PartitionLeader
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.topics import CreateTopic
from model.errors import ErrorCode, GroupError
from model.ids import TopicId, TopicName
from model.responses.topics import TopicResponse
from model.topics import Topic

KEY = 3
wire = response_schema(KEY)
closing = response_schema(KEY, 10)
"""The last version with ClusterAuthorizedOperations."""

CLUSTER_OPERATIONS_VERSIONS: Final = range(8, 11)
ALL_TOPICS_IF_EMPTY_VERSION: Final = 0
FIRST_NULL_NAME_VERSION: Final = 12
LONGEST_TOPIC_NAME: Final = 249
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_SAME_LEADER_RUNS: Final = 512
_KEPT_PARTITIONS_MAX: Final = 1_000
"""Longer lists are not cached: encoding takes under 20 ns a partition, caching much memory."""
_EVERY_BYTE_SET: Final = 0x01010101


def handle(context: RequestContext, request: Any) -> None:
    """Reply, after creating the missing topics if auto-creation applies."""
    if _creates_topics(context, request):
        handle_in_slices(context, _create_missing(context, request))
    else:
        _reply(context, request, {})


def _create_missing(context: RequestContext, request: Any) -> Steps[None]:
    missing = yield from _find_missing(context, request)
    if not missing:
        _reply(context, request, {})
        return
    created: dict[str, Topic | ErrorCode] = {}

    def on_created(name: str, answer: Answer) -> None:
        if isinstance(answer, TopicResponse):
            created[name] = answer.topic
        else:
            assert isinstance(answer, GroupError)
            # Another request has just created it: LEADER_NOT_AVAILABLE makes the client retry.
            exists = answer.code is ErrorCode.TOPIC_ALREADY_EXISTS
            created[name] = ErrorCode.LEADER_NOT_AVAILABLE if exists else answer.code
        if len(created) == len(missing):
            _reply(context, request, created)

    for name, is_slice_done in pace(missing, COMMANDS_SLICE):
        command = CreateTopic(
            context.caller,
            TopicName(name),
            TopicId(uuid.uuid4().bytes),
            context.node.settings.num_partitions,
        )
        context.submit(command, partial(on_created, name))
        if is_slice_done:
            yield


def _creates_topics(context: RequestContext, request: Any) -> bool:
    return bool(
        context.node.settings.auto_create_topics_enable
        and getattr(request, "allow_auto_topic_creation", True)
        and request.topics
    )


def _find_missing(context: RequestContext, request: Any) -> Steps[list[str]]:
    """The names of the topics that are not there, and that the caller may create."""
    known = context.node.coordinator.image.by_name
    rows = _compute_rows(request)
    names = dict.fromkeys(row.name for row in rows if not getattr(row, "topic_id", None))
    may_create_all = may_see(context, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)

    def is_meant(name: str | None) -> bool:
        return (
            name is not None
            and name not in known
            and is_topic_name(name)
            and may_see(context, Operation.DESCRIBE, ResourceType.TOPIC, name)
            and (may_create_all or context.authorized(Operation.CREATE, ResourceType.TOPIC, name))
        )

    return (yield from select_each(is_meant, names))


def is_topic_name(name: str) -> bool:
    """Whether Kafka allows this topic name."""
    return (
        len(name) <= LONGEST_TOPIC_NAME
        and name not in (".", "..")
        and _TOPIC_NAME.fullmatch(name) is not None
    )


def _reply(context: RequestContext, request: Any, created: dict[str, Topic | ErrorCode]) -> None:
    wants_all = request.topics is None or (
        context.version == ALL_TOPICS_IF_EMPTY_VERSION and not request.topics
    )
    with_operations = getattr(request, "include_topic_authorized_operations", False)
    if wants_all:
        reply_in_slices(context, _make_all(context, request, with_operations))
        return
    rows = _compute_rows(request)
    topics = (_find(context, row, created, with_operations) for row in rows)
    reply_in_slices(context, _make_long(context, request, len(rows), topics))


def _make_all(context: RequestContext, request: Any, with_operations: bool) -> Steps[Any]:
    def is_seen(topic: Topic) -> bool:
        return may_see(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)

    every = tuple(context.node.coordinator.image.by_name.values())
    shown = yield from select_each(is_seen, every)
    topics = (_describe_with(context, with_operations, topic) for topic in shown)
    made = yield from _make_long(context, request, len(shown), topics)
    return made


def _make_long(
    context: RequestContext, request: Any, count: int, topics: Iterable[Any]
) -> Steps[Any]:
    source = wire.MetadataResponseTopic
    rows = yield from LongAnswer(context).encode(source, ("topics",), count, topics)
    return _make(context, request, ErrorCode.NONE, rows)


def _compute_rows(request: Any) -> Sequence[Any]:
    """The requested topics: those with an id if there are any, else all.

    Source: Kafka's ``KafkaApis.handleTopicMetadataRequest``.
    """
    with_ids = [row for row in request.topics if getattr(row, "topic_id", None)]
    return with_ids or request.topics


def _find(
    context: RequestContext,
    row: Any,
    created: dict[str, Topic | ErrorCode],
    with_operations: bool,
) -> Any:
    """Describe one requested topic, by id if it has one, else by name."""
    image = context.node.coordinator.image
    topic_id = getattr(row, "topic_id", None)
    if topic_id or row.name is None:
        ref = find_topic_by_id(context, image, topic_id, Operation.DESCRIBE)
        if ref.topic is None:
            name = None if context.version >= FIRST_NULL_NAME_VERSION else ""
            return _refuse(name, topic_id, ref.error)
        return _describe_with(context, with_operations, ref.topic)
    if not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, row.name):
        return _refuse(row.name, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    operations = compute_authorized_operations(
        context, ResourceType.TOPIC, row.name, with_operations
    )
    if not is_topic_name(row.name):
        return _refuse(row.name, None, ErrorCode.INVALID_TOPIC_EXCEPTION, operations)
    found = image.by_name.get(row.name) or created.get(row.name)
    if isinstance(found, Topic):
        return _describe(context, found, operations)
    return _refuse(row.name, None, found or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, operations)


def _refuse(
    name: str | None, topic_id: bytes | None, code: ErrorCode, operations: int = NOT_REQUESTED
) -> Any:
    return wire.MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        partitions=(),
        topic_authorized_operations=operations,
    )


def _describe_with(context: RequestContext, with_operations: bool, topic: Topic) -> Any:
    operations = compute_authorized_operations(
        context, ResourceType.TOPIC, topic.name, with_operations
    )
    return _describe(context, topic, operations)


def _describe(context: RequestContext, topic: Topic, operations: int) -> Any:
    return wire.MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=False,
        partitions=_partitions(context, topic),
        topic_authorized_operations=operations,
    )


def _partitions(context: RequestContext, topic: Topic) -> Any:
    """The partitions of a topic; if one leader has them all, they are encoded at once or cached."""
    leaders = context.node.topics.leaders_of(topic)
    node_id = context.node.settings.node_id
    if leaders and leaders.count(leaders[0]) == len(leaders):
        encode = _keep_partitions if len(leaders) <= _KEPT_PARTITIONS_MAX else _encode_partitions
        return encode(context.version, node_id, leaders[0], len(leaders))
    return tuple(_partition(number, leader, node_id) for number, leader in enumerate(leaders))


def _encode_partitions(version: int, node_id: int, leader: PartitionLeader, count: int) -> Encoded:
    """Encode ``count`` partitions of one leader in this version.

    They differ in their index only, so one partition is encoded and repeated.
    """
    response = response_type(KEY, version)
    pack_length, write = compile_rows_writer(
        wire.MetadataResponsePartition, response, "topics", "partitions"
    )
    first, other = bytearray(), bytearray()
    write(_partition(0, leader, node_id), first.extend)
    write(_partition(_EVERY_BYTE_SET, leader, node_id), other.extend)
    width = len(first)
    index_at = next(at for at in range(width) if first[at] != other[at])
    rows = np.frombuffer(bytes(first) * count, np.uint8).reshape(count, width).copy()
    indexes = np.arange(count, dtype=">i4").view(np.uint8).reshape(count, 4)
    rows[:, index_at : index_at + 4] = indexes
    return Encoded(pack_length(count) + rows.tobytes())


_keep_partitions = lru_cache(maxsize=_SAME_LEADER_RUNS)(_encode_partitions)


def _partition(number: int, leader: PartitionLeader, node_id: int) -> Any:
    leader_id = node_id if leader.node_id is None else leader.node_id
    return wire.MetadataResponsePartition(
        error_code=ErrorCode.NONE,
        partition_index=number,
        leader_id=leader_id,
        leader_epoch=leader.epoch,
        replica_nodes=leader.replicas or (leader_id,),
        isr_nodes=leader.in_sync or (leader_id,),
        offline_replicas=(),
    )


def _make(context: RequestContext, request: Any, code: ErrorCode, topics: Any) -> Any:
    values: dict[str, Any] = {}
    response = wire.MetadataResponse
    if context.version in CLUSTER_OPERATIONS_VERSIONS:
        response = closing.MetadataResponse
        values["cluster_authorized_operations"] = compute_authorized_operations(
            context,
            ResourceType.CLUSTER,
            CLUSTER_NAME,
            request.include_cluster_authorized_operations,
        )
    else:
        values["error_code"] = code
    return response(
        throttle_time=0,
        brokers=[
            wire.MetadataResponseBroker(
                node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in compute_brokers(context)
        ],
        cluster_id=context.node.coordinator.cluster_id,
        controller_id=context.node.settings.node_id,
        topics=topics,
        **values,
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every requested topic and, from version 13, the response as a whole."""
    topics = [
        _refuse(row.name, getattr(row, "topic_id", None), code) for row in request.topics or ()
    ]
    return _make(context, request, code, topics)


API = Api(
    key=KEY, name="Metadata", versions=range(14), handler=handle, failed=failed, is_large=True
)
