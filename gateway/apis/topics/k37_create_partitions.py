"""CreatePartitions (37), versions 0 to 3: adds partitions to topics.

Needs ALTER on the topic.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import COMMANDS_SLICE, SLICE, handle_in_slices, pace
from gateway.topic_requests import Gather, find_duplicates, is_allowed
from gateway.topics.replica_assignments import check_assignment
from gateway.topics.topic_catalogue import TopicDataError
from model.access.acls import Operation
from model.commands.topics import GrowTopic
from model.errors import ErrorCode, GroupError
from model.ids import TopicName

KEY = 37
wire = response_schema(KEY)

PARTITIONS_ADDED_MAX: Final = 10_000


def handle(context: RequestContext, request: Any) -> None:
    """Add partitions to the topics; each has its own result."""
    handle_in_slices(context, _grow(context, request))


def _grow(context: RequestContext, request: Any) -> Steps[None]:
    def reply(results: Any) -> None:
        context.reply(wire.CreatePartitionsResponse(throttle_time=0, results=results))

    gather = Gather[Any](context, reply)
    duplicates = find_duplicates(map(attrgetter("name"), request.topics))
    for name, is_slice_done in pace(duplicates, SLICE):
        gather.add(_make_result(name, ErrorCode.INVALID_REQUEST, f"Duplicate topic {name!r}."))
        if is_slice_done:
            yield
    for wanted, is_slice_done in pace(request.topics, COMMANDS_SLICE):
        if is_slice_done:
            yield
        if wanted.name in duplicates:
            continue
        try:
            _check(context, wanted)
        except TopicDataError as error:
            gather.add(_make_result(wanted.name, error.code, error.message))
            continue
        command = GrowTopic(
            context.caller, TopicName(wanted.name), wanted.count, request.validate_only
        )
        gather.submit(command, partial(_compute_result, wanted.name))
    gather.close()


def _check(context: RequestContext, wanted: Any) -> None:
    """Check rights, limits and assignments, which the coordinator does not; ``TopicDataError``."""
    if not is_allowed(context, Operation.ALTER, wanted.name):
        raise TopicDataError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    topic = context.node.topics.image.by_name.get(wanted.name)
    added = wanted.count - topic.partitions if topic is not None else 0
    if added <= 0:
        return
    if added > PARTITIONS_ADDED_MAX:
        raise TopicDataError(
            ErrorCode.POLICY_VIOLATION,
            f"A request may add at most {PARTITIONS_ADDED_MAX} partitions to a topic.",
        )
    if wanted.assignments is None:
        return
    if len(wanted.assignments) != added:
        raise TopicDataError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partitions are added, but {len(wanted.assignments)} assignments are given.",
        )
    for assignment in wanted.assignments:
        check_assignment(assignment.broker_ids, context.node.settings.node_id)


def _compute_result(name: str, answer: Answer) -> Any:
    if isinstance(answer, GroupError):
        return _make_result(name, answer.code, answer.message)
    return _make_result(name, ErrorCode.NONE, None)


def _make_result(name: str, code: int, message: str | None) -> Any:
    return wire.CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every topic."""
    results = [_make_result(wanted.name, code, message) for wanted in request.topics]
    return wire.CreatePartitionsResponse(throttle_time=0, results=results)


API = Api(
    key=KEY,
    name="CreatePartitions",
    versions=range(4),
    handler=handle,
    failed=failed,
    is_large=True,
)
