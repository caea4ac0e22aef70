"""SyncGroup (14), versions 0 to 5: a classic member fetches its assignment.

The leader sends the assignments of all members, and the others wait for it. Version 3 adds static
members (KIP-345), version 5 the protocol type and name (KIP-559). Needs READ on the group.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator.runtime.api import Answer
from gateway.api import Api, RequestContext
from gateway.apis.groups.group_rights import check_may_read
from gateway.codec.kio_schema import response_schema
from model.commands.classic import MemberAssignment, SyncGroup
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId
from model.responses.classic import SyncGroupResponse

KEY = 14
wire = response_schema(KEY)

FIRST_VERSION_WITH_PROTOCOL: Final = 5


def handle(context: RequestContext, request: Any) -> None:
    """Authorise, check and submit; ``gateway.heartbeats.classic_heartbeats`` may park it."""
    if not check_may_read(context, request.group_id):
        return
    if context.version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        message = "ProtocolType and ProtocolName can't be null from version 5."
        context.reply_failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
        return

    command = make_command(context, request)

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
            return
        if not check_may_read(context, request.group_id):
            return
        assert isinstance(answer, SyncGroupResponse)
        context.reply(
            wire.SyncGroupResponse(
                throttle_time=0,
                error_code=ErrorCode.NONE,
                protocol_type=answer.protocol_type,
                protocol_name=answer.protocol_name,
                assignment=answer.assignment,
            )
        )

    def on_sync(answer: Answer) -> None:
        if isinstance(answer, SyncGroupResponse):
            context.node.heartbeats.classic.answer_sync(context, command, answer, on_answer)
        else:
            on_answer(answer)

    context.submit_waiting(command, on_sync)


def make_command(context: RequestContext, request: Any) -> SyncGroup:
    """The command, with the wire's sentinels resolved."""
    instance_id = getattr(request, "group_instance_id", None)
    return SyncGroup(
        context.caller,
        GroupId(request.group_id),
        MemberId(request.member_id),
        request.generation_id,
        tuple(
            MemberAssignment(MemberId(given.member_id), given.assignment)
            for given in request.assignments
        ),
        None if instance_id is None else InstanceId(instance_id),
        getattr(request, "protocol_type", None),
        getattr(request, "protocol_name", None),
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request."""
    return wire.SyncGroupResponse(
        throttle_time=0, error_code=code, protocol_type=None, protocol_name=None, assignment=b""
    )


API = Api(key=KEY, name="SyncGroup", versions=range(6), handler=handle, failed=failed)
