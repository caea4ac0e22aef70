"""``muster.v1.LogService``: the log, as it lies on the server's disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, NamedTuple, TypeAlias, TypeVar

import grpc.aio

from coordinator.runtime.as_of.history_reads import HistoryBusy
from coordinator.runtime.as_of.log_pages import (
    BeforeOffset,
    FromOffset,
    FromTime,
    LogPage,
    PageStart,
)
from coordinator.runtime.as_of.log_reads import LogReads, LogRequest, PartitionDescription
from coordinator.runtime.as_of.reader_places import compute_holder
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.decode import decode_any_group_id
from coordinator.service.wire.error_statuses import InvalidField
from model.access.acls import Operation
from model.caller import Caller
from model.errors import CoordinatorNotAvailable, ErrorCode, GroupError, UnsupportedVersion
from model.ids import LogOffset, LogPartition
from muster.v1 import log_pb2, log_pb2_grpc
from storage.log.trim import HistoryStart

TAKEN_WITHIN_S: Final = 60.0
"""A client that takes no message for so long loses its stream, and goes on where it was."""

_OFFSET_MAX: Final = (1 << 63) - 1

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class LogNotTaken(GroupError):
    """The client does not read its stream."""

    code = ErrorCode.REQUEST_TIMED_OUT


class _Reading(NamedTuple):
    """What a stream sends: pages of a partition that ended there when it began."""

    partition: LogPartition
    end: LogOffset
    pages: AsyncGenerator[LogPage, None]


class _Stream:
    """A stream to a client, which may have to end before its time."""

    def __init__(self, patience: asyncio.Timeout) -> None:
        self.patience = patience
        self.is_lost = False
        self._is_ended = False

    def lose(self) -> None:
        """End it for somebody else."""
        self.is_lost = True
        self.end()

    def end(self) -> None:
        """End it at once."""
        self._is_ended = True
        self.patience.reschedule(0.0)

    def end_in(self, wait_s: float | None) -> None:
        """End it after a time, or not."""
        if not self._is_ended:
            now_s = asyncio.get_running_loop().time()
            self.patience.reschedule(None if wait_s is None else now_s + wait_s)


class LogService(log_pb2_grpc.LogServiceServicer):
    """Reads the log. See ``coordinator.service.wire.error_statuses`` for the statuses of errors."""

    def __init__(self, services: Services, log_reads: LogReads | None) -> None:
        """``log_reads`` is ``None`` if the log is not on disk."""
        self._services = services
        self._access = services.access
        self._log_reads = log_reads
        self._is_stopping = False
        self._streams: set[_Stream] = set()

    def stop(self) -> None:
        """End all streams at once; their clients resume them on another server, or on the next."""
        self._is_stopping = True
        for stream in self._streams:
            stream.end()

    async def DescribeLog(  # noqa: N802
        self,
        request: log_pb2.DescribeLogRequest,
        context: _Context[log_pb2.DescribeLogRequest, log_pb2.DescribeLogResponse],
    ) -> log_pb2.DescribeLogResponse:
        async with Guard(context):
            self._access.check_cluster_caller(context.peer(), Operation.DESCRIBE)
            log = self._find_log()
            response = log_pb2.DescribeLogResponse(cluster_id=log.cluster_id)
            rows = make_rows(response.partitions.extend, _encode_partition, log.describe())
            await run_steps(rows)
            return response

    async def ReadLog(  # noqa: N802
        self,
        request: log_pb2.ReadLogRequest,
        context: _Context[log_pb2.ReadLogRequest, log_pb2.ReadLogResponse],
    ) -> None:
        async with Guard(context, group_id=request.group_id):
            caller = compute_caller(context.peer(), "")
            wanted = self._decode(request, caller)
            log = self._find_log()
            end = log.find_end(wanted.partition)
            holder = compute_holder(caller)
            stream = _Stream(asyncio.timeout(None))
            reading = _Reading(wanted.partition, end, log.read(wanted, holder))
            try:
                async with stream.patience:
                    with log.opened(holder, stream.lose):
                        self._streams.add(stream)
                        await self._send(context, caller, reading, stream)
            except TimeoutError:
                raise self._compute_end(stream) from None
            finally:
                self._streams.discard(stream)

    async def _send(
        self,
        context: _Context[log_pb2.ReadLogRequest, log_pb2.ReadLogResponse],
        caller: Caller,
        reading: _Reading,
        stream: _Stream,
    ) -> None:
        async with aclosing(reading.pages) as pages:
            async for page in pages:
                self._check_topics(caller, page)
                stream.end_in(TAKEN_WITHIN_S)
                await context.write(_encode_page(reading.partition, page, reading.end))
                stream.end_in(None)

    def _compute_end(self, stream: _Stream) -> GroupError:
        """Why a stream ended before its time."""
        if self._is_stopping:
            return CoordinatorNotAvailable(
                "the server is stopping: go on from the last next_offset"
            )
        if stream.is_lost:
            return HistoryBusy(
                "you read the log several times, and others wait: go on from the last next_offset"
            )
        return LogNotTaken(
            f"no message was taken for {TAKEN_WITHIN_S:g} s: go on from the last next_offset"
        )

    def _find_log(self) -> LogReads:
        if self._log_reads is None:
            raise UnsupportedVersion("this server has no log on disk")
        if self._is_stopping:
            raise CoordinatorNotAvailable("the server is stopping")
        return self._log_reads

    def _decode(self, request: log_pb2.ReadLogRequest, caller: Caller) -> LogRequest:
        """What to read, if the caller may. Raises ``GroupError``."""
        if not request.group_id:
            self._access.check_cluster(caller, Operation.DESCRIBE)
            partitions = self._find_log().partitions
            if not 0 <= request.partition < partitions:
                raise InvalidField("partition", f"partition must be from 0 to {partitions - 1}")
            partition, group_id = LogPartition(request.partition), None
        else:
            group_id = decode_any_group_id(request.group_id, self._services.limits)
            self._access.check_group(caller, Operation.DESCRIBE, group_id)
            if request.partition:
                raise InvalidField("partition", "partition is that of the group: leave it out")
            partition = self._services.coordinator.partition_of(group_id)
        for field in ("end_offset", "max_bytes"):
            if getattr(request, field) < 0:
                raise InvalidField(field, f"{field} must not be below 0")
        return LogRequest(
            partition,
            _decode_start(request),
            LogOffset(request.end_offset) if request.end_offset else None,
            request.max_bytes or _OFFSET_MAX,
            group_id,
            request.with_compacted,
        )

    def _check_topics(self, caller: Caller, page: LogPage) -> None:
        """Who may describe a group is told of topics only if each of them may be described."""
        self._access.check_topics(caller, Operation.DESCRIBE, sorted(page.topics))


def _decode_start(request: log_pb2.ReadLogRequest) -> PageStart:
    field = request.WhichOneof("start")
    if field is None:
        raise InvalidField("start", "one of offset, timestamp_ms and before_offset is needed")
    if getattr(request, field) < 0:
        raise InvalidField(field, f"{field} must not be below 0")
    match field:
        case "offset":
            return FromOffset(LogOffset(request.offset))
        case "timestamp_ms":
            return FromTime(request.timestamp_ms)
        case "before_offset":
            return BeforeOffset(LogOffset(request.before_offset))
        case _:
            raise AssertionError(field)


def _encode_page(partition: LogPartition, page: LogPage, end: LogOffset) -> log_pb2.ReadLogResponse:
    return log_pb2.ReadLogResponse(
        partition=partition,
        batches=page.batches,
        next_offset=page.next_offset,
        end_offset=end,
        history_start=_encode_start(page.history),
    )


def _encode_partition(described: PartitionDescription) -> log_pb2.LogPartitionDescription:
    return log_pb2.LogPartitionDescription(
        partition=described.partition,
        history_start=_encode_start(described.history),
        end_offset=described.end,
    )


def _encode_start(start: HistoryStart) -> log_pb2.HistoryStart:
    return log_pb2.HistoryStart(offset=start.offset, before_ms=start.before_ms)
