"""Heartbeat (12), versions 0 to 4: a classic member reports that it is alive.

Version 3 adds static members (KIP-345). While the group is loading, a heartbeat succeeds, as in
Kafka (row H3 of ``tests/scenarios/README.md``). Needs READ on the group.
"""

from __future__ import annotations

from typing import Any

from coordinator.runtime.api import Answer
from gateway.api import Api, RequestContext
from gateway.apis.groups.group_rights import check_may_read
from gateway.codec.kio_schema import response_schema
from model.commands.classic import ClassicHeartbeat
from model.errors import CoordinatorLoadInProgress, ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId

KEY = 12
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """Authorise and submit; ``gateway.heartbeats.classic_heartbeats`` may park the request."""
    if not check_may_read(context, request.group_id):
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError) and not isinstance(answer, CoordinatorLoadInProgress):
            context.reply_failed(answer.code, answer.message)
        elif check_may_read(context, request.group_id):
            context.reply(_respond(ErrorCode.NONE))

    context.node.heartbeats.classic.submit(context, make_command(context, request), on_answer)


def make_command(context: RequestContext, request: Any) -> ClassicHeartbeat:
    """The command, with the wire's sentinels resolved."""
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
    """Fail the request."""
    return _respond(code)


API = Api(key=KEY, name="Heartbeat", versions=range(5), handler=handle, failed=failed)
