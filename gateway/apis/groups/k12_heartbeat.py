"""Heartbeat (12), versions 0 to 4: a member of a classic group is alive.

From version 3 there are static members (KIP-345). While the group is being loaded the answer is
that all is well, as Kafka's is (row H3). Needs READ on the group.
"""

from __future__ import annotations

from typing import Any

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from model.commands import ClassicHeartbeat
from model.errors import CoordinatorLoadInProgress, ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId

KEY = 12
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """Authorise and submit; parking is ``gateway.heartbeats.classic_heartbeats``'s."""
    if not context.authorized(Operation.READ, ResourceType.GROUP, request.group_id):
        context.reply_failed(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Not authorized to the group.")
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError) and not isinstance(answer, CoordinatorLoadInProgress):
            context.reply_failed(answer.code, answer.message)
        else:
            context.reply(_respond(ErrorCode.NONE))

    context.node.heartbeats.classic.submit(context, make_command(context, request), on_answer)


def make_command(context: RequestContext, request: Any) -> ClassicHeartbeat:
    """The command, without the wire's sentinels."""
    instance_id = getattr(request, "group_instance_id", None)
    return ClassicHeartbeat(
        context.caller,
        GroupId(request.group_id),
        MemberId(request.member_id),
        request.generation_id,
        None if instance_id is None else InstanceId(instance_id),
    )


def _respond(code: ErrorCode) -> Any:
    return wire.HeartbeatResponse(throttle_time=0, error_code=code)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """An error."""
    return _respond(code)


API = Api(key=KEY, name="Heartbeat", versions=range(5), handler=handle, failed=failed)
