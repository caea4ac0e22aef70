"""Produce (0), versions 3 to 13: appends record batches to partitions stored on this server.

Needs WRITE on the topic. Transactional batches are rejected. With acks 0 there is no response, and
an error closes the connection, as in Kafka: the producer has no other way to learn of it. With acks
1 and -1 the response follows when the records are written; there is one replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, handle_in_slices, reply_in_slices
from gateway.topic_requests import (
    TopicRef,
    check_partition,
    compute_error_for_version,
    find_topic_by_id,
    find_topic_by_name,
)
from gateway.topics.log.produced import check_sent
from gateway.topics.topic_catalogue import Append, AppendResult, TopicDataError
from model.access.acls import Operation
from model.errors import ErrorCode

KEY = 0
wire = response_schema(KEY)
by_name = response_schema(KEY, 12)
"""The last version with topic names; it otherwise has the fields of the newest version."""

TOPIC_ID_VERSION: Final = 13
NO_ACKS: Final = 0
ALL_ACKS: Final = (-1, 0, 1)
PARTITIONS_SLICE: Final = 50
"""Partitions appended to in one iteration, about 50 µs each."""


class _Closing(Protocol):
    def refuse(self, reason: str, detail: str) -> None: ...


class _Slot:
    """One partition of the request, with its result once known."""

    __slots__ = ("index", "result")

    def __init__(self, index: int) -> None:
        self.index = index
        self.result = AppendResult(ErrorCode.UNKNOWN_SERVER_ERROR)


def _append(context: RequestContext, request: Any) -> Steps[None]:
    """Append the valid and authorized batches in time slices, then reply."""
    slots: list[list[_Slot]] = []
    appends: list[Append] = []
    waiting: list[_Slot] = []
    left = PARTITIONS_SLICE
    for wanted in request.topic_data:
        ref = _find_topic(context, wanted)
        row: list[_Slot] = []
        slots.append(row)
        for data in wanted.partition_data:
            slot = _Slot(data.index)
            row.append(slot)
            try:
                appends.append(_check(context, request, ref, data))
                waiting.append(slot)
            except TopicDataError as error:
                slot.result = AppendResult(error.code, message=error.message)
            left -= 1
            if not left:
                yield from _append_slice(context, appends, waiting)
                appends, waiting, left = [], [], PARTITIONS_SLICE
                yield
    yield from _append_slice(context, appends, waiting)
    if request.acks == NO_ACKS:
        _end_without_answer(context, slots)
    else:
        reply_in_slices(context, _make_response(context, request, slots))


def _append_slice(
    context: RequestContext, appends: list[Append], waiting: list[_Slot]
) -> Steps[None]:
    results = yield from context.node.topics.append(appends)
    for slot, result in zip(waiting, results, strict=True):
        slot.result = result


def handle(context: RequestContext, request: Any) -> None:
    """Append the record batches; each partition has its own result."""
    handle_in_slices(context, _append(context, request))


def _find_topic(context: RequestContext, wanted: Any) -> TopicRef:
    image = context.node.topics.image
    if context.version >= TOPIC_ID_VERSION:
        return find_topic_by_id(context, image, wanted.topic_id, Operation.WRITE)
    return find_topic_by_name(context, image, wanted.name, Operation.WRITE)


def _check(context: RequestContext, request: Any, ref: TopicRef, data: Any) -> Append:
    key = check_partition(context.node.topics, ref, data.index)
    records = check_sent(data.records, context.version)
    if request.acks not in ALL_ACKS:
        raise TopicDataError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"Invalid acks {request.acks}: use 0, 1 or -1."
        )
    return Append(key, records)


def _make_response(
    context: RequestContext, request: Any, slots: Sequence[Sequence[_Slot]]
) -> Steps[Any]:
    by_id = context.version >= TOPIC_ID_VERSION
    schema = wire if by_id else by_name
    responses = []
    left = SLICE
    for wanted, row in zip(request.topic_data, slots, strict=True):
        partitions = []
        for slot in row:
            partitions.append(_make_partition(schema, slot, by_id))
            left -= 1
            if not left:
                left = SLICE
                yield
        topic = {"topic_id": wanted.topic_id} if by_id else {"name": wanted.name}
        responses.append(schema.TopicProduceResponse(**topic, partition_responses=partitions))
    return schema.ProduceResponse(responses=responses, throttle_time=0)


def _end_without_answer(context: RequestContext, slots: Sequence[Sequence[_Slot]]) -> None:
    errors = [slot.result for row in slots for slot in row if slot.result.error]
    if not errors:
        context.reply_nothing()
        return
    detail = f"Produce with acks 0 failed with error {int(errors[0].error)}: {errors[0].message}"
    cast(_Closing, context.client).refuse("produce-acks-0", detail)


def _make_partition(schema: Any, slot: _Slot, by_id: bool) -> Any:
    result = slot.result
    return schema.PartitionProduceResponse(
        index=slot.index,
        error_code=compute_error_for_version(result.error, by_id),
        base_offset=result.base_offset,
        log_append_time=result.duplicate_timestamp,
        log_start_offset=result.log_start_offset,
        record_errors=[
            schema.BatchIndexAndErrorMessage(
                batch_index=index, batch_index_error_message=result.message
            )
            for index in result.rejected
        ],
        error_message=result.message,
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every partition."""
    slots = [[_Slot(data.index) for data in wanted.partition_data] for wanted in request.topic_data]
    for row in slots:
        for slot in row:
            slot.result = AppendResult(code, message=message)
    return run_at_once(_make_response(context, request, slots))


API = Api(
    key=KEY,
    name="Produce",
    versions=range(3, 14),
    handler=handle,
    failed=failed,
    # As Kafka does (KAFKA-18659): librdkafka assumes that a broker without version 0 accepts no
    # compressed batches. A request below version 3 closes the connection like any unserved one.
    least_advertised=0,
    is_large=True,
)
