"""LeaveGroup (13), versions 0 to 5: classic members leave, or an admin client removes them.

From version 3 a request lists members by member id, or by instance id with an empty member id, and
each has its own result (KIP-345). Below version 3 there is one member, whose error is the
request's. Version 5 adds a reason (KIP-800). Needs READ on the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.apis.groups.group_rights import check_may_read
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, handle_in_slices, pace, reply_in_slices
from gateway.topic_requests import Gather
from model.commands.consumer import LeaveGroup, LeavingMember
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId
from model.responses.classic import LeaveGroupResponse

KEY = 13
wire = response_schema(KEY)

FIRST_VERSION_OF_MANY: Final = 3
MEMBERS_SLICE: Final = 1_000
"""Members that leave in one iteration, about 5 µs each."""


def handle(context: RequestContext, request: Any) -> None:
    """Remove the members; the response has their results in request order."""
    if not check_may_read(context, request.group_id):
        return
    if not request.group_id:
        context.reply_failed(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
        return
    if context.version < FIRST_VERSION_OF_MANY:
        _leave(context, request)
    else:
        handle_in_slices(context, _leave_all(context, request))


def _leave(context: RequestContext, request: Any) -> None:
    """Remove one member, whose error is the request's."""

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
        else:
            assert isinstance(answer, LeaveGroupResponse)
            context.reply(_respond(answer.errors[0]))

    leaving = LeavingMember(MemberId(request.member_id))
    command = LeaveGroup(context.caller, GroupId(request.group_id), (leaving,))
    context.submit(command, on_answer)


def _leave_all(context: RequestContext, request: Any) -> Steps[None]:
    """Remove the members in chunks of ``MEMBERS_SLICE``, one command each."""
    gather = Gather[Answer](
        context, lambda answers: reply_in_slices(context, _make(context, request, answers))
    )
    members = request.members
    for begin in range(0, max(len(members), 1), MEMBERS_SLICE):
        leaving = tuple(map(compute_leaving, members[begin : begin + MEMBERS_SLICE]))
        command = LeaveGroup(context.caller, GroupId(request.group_id), leaving)
        gather.submit(command, lambda answer: answer)
        if len(leaving) == MEMBERS_SLICE:
            yield
    gather.close()


def _make(context: RequestContext, request: Any, answers: Sequence[Answer]) -> Steps[Any]:
    errors: list[ErrorCode] = []
    for answer in answers:
        if isinstance(answer, GroupError):
            return failed(context, request, answer.code, answer.message)
        assert isinstance(answer, LeaveGroupResponse)
        errors += answer.errors
    results = []
    rows = zip(request.members, errors, strict=True)
    for (member, error), is_slice_done in pace(rows, SLICE):
        results.append(
            wire.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error,
            )
        )
        if is_slice_done:
            yield
    return _respond(ErrorCode.NONE, results)


def compute_leaving(member: Any) -> LeavingMember:
    """The member to remove; an empty member id means "none" only next to an instance id."""
    instance_id, reason = member.group_instance_id, getattr(member, "reason", None)
    if instance_id is None:
        return LeavingMember(MemberId(member.member_id), reason=reason)
    member_id = MemberId(member.member_id) if member.member_id else None
    return LeavingMember(member_id, InstanceId(instance_id), reason)


def _respond(code: ErrorCode, members: Sequence[Any] = ()) -> Any:
    return wire.LeaveGroupResponse(throttle_time=0, error_code=code, members=members)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the whole request."""
    return _respond(code)


API = Api(
    key=KEY, name="LeaveGroup", versions=range(6), handler=handle, failed=failed, is_large=True
)
