"""Reports of where partitions end: who may make them, and which are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from coordinator.runtime.loop.slices import Steps
from coordinator.service.calls.services import Services
from coordinator.service.ends.end_reports import EndReports, Verdict
from coordinator.service.wire.answer_slices import SLICE, run_steps
from coordinator.service.wire.end_report_messages import TopicEnds, decode_report
from coordinator.service.wire.error_statuses import encode_error
from model.access.acls import Operation
from model.caller import Caller
from model.errors import ErrorCode, PolicyViolation
from model.topics import Topic
from muster.v1 import group_pb2, types_pb2

_OF_A_CLUSTER: Final = (
    "the topics are those of a cluster, which is asked where they end: leave the report out"
)
_NO_ROOM: Final = (
    "grpc.end.reports.max: so many partitions have a report, of all clients; raise it, or wait "
    "until some are too old"
)


async def take_report(
    services: Services, caller: Caller, request: group_pb2.ReportEndOffsetsRequest
) -> group_pb2.ReportEndOffsetsResponse:
    """Take what may be taken. Raises ``GroupError`` for a report of which nothing is.

    It needs the right to write to a topic: who has it can move the end of the topic anyway. A lie
    shows a wrong lag of the groups that read it, for as long as a report is believed.
    """
    known = services.known_ends
    reports = None if known is None else known.reports
    if known is None or reports is None:
        raise PolicyViolation(_OF_A_CLUSTER)
    topics = await run_steps(decode_report(request))
    steps = _take_all(services, reports, caller, topics, known.now_ms)
    failures = await run_steps(steps)
    return group_pb2.ReportEndOffsetsResponse(failures=failures, max_age_ms=reports.max_age_ms)


def _take_all(
    services: Services,
    reports: EndReports,
    caller: Caller,
    topics: Sequence[TopicEnds],
    now_ms: Callable[[], int],
) -> Steps[list[types_pb2.TopicFailures]]:
    failures: list[types_pb2.TopicFailures] = []
    left = SLICE
    for given in topics:
        found = _find_topic(services, caller, given)
        failed: list[types_pb2.PartitionFailure] = []
        for partition, end in given.ends:
            error = (
                found
                if isinstance(found, types_pb2.Error)
                else _take(services, reports, found, partition, end, now_ms())
            )
            if error is not None:
                failed.append(types_pb2.PartitionFailure(partition=partition, error=error))
            left -= 1
            if left <= 0:
                left = SLICE
                yield
        if failed:
            failures.append(
                types_pb2.TopicFailures(
                    topic_name=given.name or "", topic_id=given.topic_id or b"", partitions=failed
                )
            )
    return failures


def _find_topic(services: Services, caller: Caller, given: TopicEnds) -> Topic | types_pb2.Error:
    """The topic, or the error of all its partitions; a stranger does not hear what is there."""
    image = services.coordinator.image
    if given.topic_id is not None:
        known = image.by_id.get(given.topic_id)
    else:
        known = None if given.name is None else image.by_name.get(given.name)
    name = given.name if known is None else known.name
    if name is not None and not services.access.may_topic(caller, Operation.WRITE, name):
        return encode_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")
    if known is not None:
        return known
    by_id = given.topic_id is not None
    code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return encode_error(code, "")


def _take(
    services: Services, reports: EndReports, topic: Topic, partition: int, end: int, now_ms: int
) -> types_pb2.Error | None:
    """Take one end; the error if that is refused."""
    if partition >= topic.partitions:
        return encode_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    match reports.take(topic.topic_id, partition, end, now_ms):
        case Verdict.NO_ROOM:
            return encode_error(ErrorCode.POLICY_VIOLATION, _NO_ROOM)
        case Verdict.TAKEN:
            services.end_offset_times.add_reported((topic.topic_id, partition), end, now_ms)
            return None
        case Verdict.LOWER:
            return None
