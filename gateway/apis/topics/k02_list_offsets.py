"""ListOffsets (2), versions 1 to 11: looks up start, end and offsets by timestamp.

Needs DESCRIBE on the topic. There is no tiered storage: the local log is the whole log, and nothing
is tiered or pending upload.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, LongAnswer, handle_in_slices, pace, reply_in_slices
from gateway.topic_requests import (
    TopicRef,
    check_leader_epoch,
    check_partition,
    compute_error_for_version,
    find_topic_by_name,
)
from gateway.topics.topic_catalogue import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    MAX_TIMESTAMP,
    OffsetQuery,
    OffsetResult,
    TopicDataError,
)
from model.access.acls import Operation
from model.errors import ErrorCode

KEY = 2
wire = response_schema(KEY)

NO_EPOCH: Final = -1
QUERIES_SLICE: Final = 200
"""Offsets looked up in one iteration, 10 µs or more each."""
ISOLATION_LEVELS: Final = (0, 1)
MIN_VERSIONS: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}


class _Slot:
    """One partition of the request, with its result once known."""

    __slots__ = ("index", "result")

    def __init__(self, index: int) -> None:
        self.index = index
        self.result = OffsetResult(ErrorCode.UNKNOWN_SERVER_ERROR)


def handle(context: RequestContext, request: Any) -> None:
    """Look up the offsets; each partition has its own result."""
    handle_in_slices(context, _find(context, request))


def _find(context: RequestContext, request: Any) -> Steps[None]:
    duplicates = yield from _find_duplicates(request)
    slots: list[tuple[str, list[_Slot]]] = []
    queries: list[OffsetQuery] = []
    waiting: list[_Slot] = []
    left = SLICE
    for wanted in request.topics:
        ref = find_topic_by_name(
            context, context.node.topics.image, wanted.name, Operation.DESCRIBE
        )
        row: dict[int, _Slot] = {}
        left -= 1
        for asked in wanted.partitions:
            left -= 1
            if left <= 0:
                left = SLICE
                yield
            if asked.partition_index in row:
                continue
            slot = row[asked.partition_index] = _Slot(asked.partition_index)
            try:
                if (wanted.name, asked.partition_index) in duplicates:
                    raise TopicDataError(ErrorCode.INVALID_REQUEST, "Duplicate partition.")
                queries.append(_check(context, request, ref, asked))
                waiting.append(slot)
            except TopicDataError as error:
                slot.result = OffsetResult(error.code)
        slots.append((wanted.name, list(row.values())))

    for begin in range(0, len(queries), QUERIES_SLICE):
        part = queries[begin : begin + QUERIES_SLICE]
        found = yield from context.node.topics.find_offsets(part)
        for slot, result in zip(waiting[begin : begin + len(part)], found, strict=True):
            slot.result = result
        if len(part) == QUERIES_SLICE:
            yield
    reply_in_slices(context, _make_response(context, slots))


def _find_duplicates(request: Any) -> Steps[set[tuple[str, int]]]:
    """The partitions that the request lists more than once."""
    once: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    wanted = (
        (topic.name, row.partition_index) for topic in request.topics for row in topic.partitions
    )
    for place, is_slice_done in pace(wanted, SLICE):
        (twice if place in once else once).add(place)
        if is_slice_done:
            yield
    return twice


def _check(context: RequestContext, request: Any, ref: TopicRef, asked: Any) -> OffsetQuery:
    topics = context.node.topics
    key = check_partition(topics, ref, asked.partition_index)
    if asked.timestamp < 0 and context.version < MIN_VERSIONS.get(asked.timestamp, 0):
        raise TopicDataError(ErrorCode.UNSUPPORTED_VERSION, "Timestamp needs a later version.")
    if getattr(request, "isolation_level", 0) not in ISOLATION_LEVELS:
        raise TopicDataError(ErrorCode.UNKNOWN_SERVER_ERROR, "Unknown isolation level.")
    epoch = getattr(asked, "current_leader_epoch", NO_EPOCH)
    if epoch != NO_EPOCH:
        check_leader_epoch(topics, key, epoch)
    return OffsetQuery(key, asked.timestamp)


def _make_response(context: RequestContext, slots: list[tuple[str, list[_Slot]]]) -> Steps[Any]:
    long = LongAnswer(context)
    topics = []
    for name, row in slots:
        partitions = yield from long.encode(
            wire.ListOffsetsPartitionResponse,
            ("topics", "partitions"),
            len(row),
            map(_make_partition, row),
        )
        topics.append(wire.ListOffsetsTopicResponse(name=name, partitions=partitions))
        long.count()
        yield from long.rest()
    return wire.ListOffsetsResponse(throttle_time=0, topics=topics)


def _make_partition(slot: _Slot) -> Any:
    return wire.ListOffsetsPartitionResponse(
        partition_index=slot.index,
        error_code=compute_error_for_version(slot.result.error, by_id=False),
        timestamp=slot.result.timestamp,
        offset=slot.result.offset,
        leader_epoch=slot.result.leader_epoch,
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every partition."""
    slots = []
    for wanted in request.topics:
        row = [_Slot(asked.partition_index) for asked in wanted.partitions]
        for slot in row:
            slot.result = OffsetResult(code)
        slots.append((wanted.name, row))
    return run_at_once(_make_response(context, slots))


API = Api(
    key=KEY, name="ListOffsets", versions=range(1, 12), handler=handle, failed=failed, is_large=True
)
