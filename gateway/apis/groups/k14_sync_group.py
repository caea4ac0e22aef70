"""SyncGroup (14), versions 0 to 5: a member of a classic group asks for its assignment.

The leader brings those of all, and the others wait for it. From version 3 there are static members
(KIP-345); from 5 a request has to say which protocol it is for (KIP-559). Needs READ on the group.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from model.commands import MemberAssignment, SyncGroup
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId
from model.responses import SyncGroupResponse

KEY = 14
wire = response_schema(KEY)

FIRST_VERSION_WITH_PROTOCOL: Final = 5


def handle(context: RequestContext, request: Any) -> None:
    """Check, authorise and submit; parking is ``gateway.heartbeats.classic_heartbeats``'s."""
    if not context.authorized(Operation.READ, ResourceType.GROUP, request.group_id):
        context.reply_failed(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Not authorized to the group.")
        return
    if context.version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        message = "From version 5 on the protocol type and name have to be there."
        context.reply_failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
        return

    command = make_command(context, request)

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
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
    """The command, without the wire's sentinels."""
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
    """An error, and no assignment."""
    return wire.SyncGroupResponse(
        throttle_time=0, error_code=code, protocol_type=None, protocol_name=None, assignment=b""
    )


API = Api(key=KEY, name="SyncGroup", versions=range(6), handler=handle, failed=failed)
