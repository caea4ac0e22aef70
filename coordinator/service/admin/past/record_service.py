"""``muster.v1.RecordService``: records of the log, decoded."""

from __future__ import annotations

from typing import Final, TypeAlias

import grpc.aio

from coordinator.runtime.as_of.reader_places import compute_holder
from coordinator.runtime.loop.slices import Steps
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import SLICE, run_steps
from coordinator.service.wire.decode import decode_any_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import compute_page, compute_page_token, decode_number
from model.access.acls import Operation
from model.caller import Caller
from model.errors import UnsupportedVersion
from model.ids import GroupId, LogOffset, LogPartition, TopicName
from muster.v1 import record_pb2, record_pb2_grpc
from storage.codec.record_filters import UnknownRecordType, parse_types
from storage.log.record_pages import RecordLine, RecordPage, RecordQuestion

TYPES_MAX: Final = 64
_OFFSET_MAX: Final = (1 << 63) - 1

_Context: TypeAlias = grpc.aio.ServicerContext[
    record_pb2.ListRecordsRequest, record_pb2.ListRecordsResponse
]


class RecordService(record_pb2_grpc.RecordServiceServicer):
    """Lists records. See ``coordinator.service.wire.error_statuses`` for statuses of errors."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._access = services.access
        self._limits = services.limits
        self._settings = services.settings

    async def ListRecords(  # noqa: N802
        self, request: record_pb2.ListRecordsRequest, context: _Context
    ) -> record_pb2.ListRecordsResponse:
        async with Guard(context, group_id=request.group_id):
            caller = compute_caller(context.peer(), "")
            group_id = self._check(request, caller)
            history = self._services.history
            if history is None:
                raise UnsupportedVersion("records are not listed: this server has no log on disk")
            question = self._decode(request, group_id)
            page, end = await history.read_records(question, compute_holder(caller))
            response = record_pb2.ListRecordsResponse(
                log_partition=question.partition, end_offset=end, reached_offset=page.reached
            )
            if page.reached > 0:
                place = str(page.reached)
                response.next_page_token = compute_page_token(place, _get_filters(request))
            await run_steps(self._add_records(response, page, caller))
            return response

    def _check(self, request: record_pb2.ListRecordsRequest, caller: Caller) -> GroupId | None:
        """The group, if there is one, of which the caller may see records."""
        if not request.group_id:
            self._access.check_cluster(caller, Operation.DESCRIBE)
            return None
        group_id = decode_any_group_id(request.group_id, self._limits)
        self._access.check_group(caller, Operation.DESCRIBE, group_id)
        return group_id

    def _decode(
        self, request: record_pb2.ListRecordsRequest, group_id: GroupId | None
    ) -> RecordQuestion:
        """The question. Raises ``InvalidField`` for what is out of bounds."""
        for field in ("since_ms", "until_ms", "before_offset"):
            if getattr(request, field) < 0:
                raise InvalidField(field, f"{field} is below 0")
        if group_id is not None and request.log_partition:
            raise InvalidField("log_partition", "the group has its log_partition: leave it out")
        if len(request.types) > TYPES_MAX:
            raise InvalidField("types", f"there are more than {TYPES_MAX} types")
        try:
            types = parse_types(request.types)
        except UnknownRecordType as error:
            raise InvalidField("types", str(error)) from None
        page = compute_page(
            request.page_size,
            request.page_token,
            _get_filters(request),
            self._settings.grpc_page_size,
            self._settings.grpc_page_size_max,
        )
        before = request.before_offset if request.HasField("before_offset") else _OFFSET_MAX
        if page.after is not None:
            before = decode_number(page.after, _OFFSET_MAX)
        if group_id is None:
            partition = LogPartition(request.log_partition)
        else:
            partition = self._services.coordinator.partition_of(group_id)
        return RecordQuestion(
            partition,
            group_id,
            types,
            request.since_ms or None,
            request.until_ms or None,
            LogOffset(before),
            page.size,
        )

    def _add_records(
        self, response: record_pb2.ListRecordsResponse, page: RecordPage, caller: Caller
    ) -> Steps[None]:
        """Add the records that the caller may see; what each topic costs is paid once."""
        sees_all = self._access.sees_cluster(caller, Operation.DESCRIBE)
        seen: dict[TopicName, bool] = {}
        done = 0
        for line in page.lines:
            for topic in line.topics:
                if topic not in seen:
                    seen[topic] = self._access.sees_topic(caller, Operation.DESCRIBE, topic)
                    done += 1
                    if done % SLICE == 0:
                        yield
            if all(seen[topic] for topic in line.topics):
                response.records.append(_encode(line, with_bytes=sees_all or not line.decode_error))
            done += 1
            if done % SLICE == 0:
                yield


def _encode(line: RecordLine, *, with_bytes: bool) -> record_pb2.LogRecord:
    """The record. The bytes of one that cannot be decoded may have any topic's name in them."""
    return record_pb2.LogRecord(
        offset=line.offset,
        timestamp_ms=line.timestamp_ms,
        base_offset=line.base_offset,
        producer_id=line.producer_id,
        producer_epoch=line.producer_epoch,
        is_transactional=line.is_transactional,
        type=line.type,
        key=line.key if with_bytes else None,
        value=line.value if with_bytes else None,
        key_json=line.key_json,
        value_json=line.value_json,
        decode_error=line.decode_error,
    )


def _get_filters(request: record_pb2.ListRecordsRequest) -> tuple[object, ...]:
    return (
        request.group_id,
        request.log_partition,
        *request.types,
        request.since_ms,
        request.until_ms,
        request.before_offset,
    )
