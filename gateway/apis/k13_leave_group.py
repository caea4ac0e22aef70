"""LeaveGroup (13), versions 0 to 5: members of a group leave, or are removed.

Tools remove members by id or, from version 3, by instance id, with an empty member id; each has its
own result. Before version 3 there is one member, and its error is the request's. From version 5 a
member may say why (KIP-800). Needs READ on the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.api import Api, RequestContext
from gateway.codec import response_schema
from model.commands import LeaveGroup, LeavingMember
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId
from model.responses import LeaveGroupResponse

KEY = 13
wire = response_schema(KEY)

FIRST_VERSION_OF_MANY: Final = 3


def handle(context: RequestContext, request: Any) -> None:
    """Answer with the result of each member, in the order asked."""
    if not context.authorized(Operation.READ, ResourceType.GROUP, request.group_id):
        context.reply_failed(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Not authorized to the group.")
        return
    if not request.group_id:
        context.reply_failed(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
        return
    if context.version < FIRST_VERSION_OF_MANY:
        members: Sequence[Any] = ()
        leaving = [LeavingMember(MemberId(request.member_id))]
    else:
        members = request.members
        leaving = [compute_leaving(member) for member in members]

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
            return
        assert isinstance(answer, LeaveGroupResponse)
        if context.version < FIRST_VERSION_OF_MANY:
            context.reply(_respond(answer.errors[0]))
            return
        results = [
            wire.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error,
            )
            for member, error in zip(members, answer.errors, strict=True)
        ]
        context.reply(_respond(ErrorCode.NONE, results))

    command = LeaveGroup(context.caller, GroupId(request.group_id), tuple(leaving))
    context.submit(command, on_answer)


def compute_leaving(member: Any) -> LeavingMember:
    """Who is meant. Only beside an instance id does an empty member id mean none."""
    instance_id, reason = member.group_instance_id, getattr(member, "reason", None)
    if instance_id is None:
        return LeavingMember(MemberId(member.member_id), reason=reason)
    member_id = MemberId(member.member_id) if member.member_id else None
    return LeavingMember(member_id, InstanceId(instance_id), reason)


def _respond(code: ErrorCode, members: Sequence[Any] = ()) -> Any:
    return wire.LeaveGroupResponse(throttle_time=0, error_code=code, members=members)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """An error for the request as a whole."""
    return _respond(code)


API = Api(key=KEY, name="LeaveGroup", versions=range(6), handler=handle, failed=failed)
