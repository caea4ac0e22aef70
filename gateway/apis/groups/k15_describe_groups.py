"""DescribeGroups (15), versions 0 to 6: describes classic groups and their members.

Version 6 returns GROUP_ID_NOT_FOUND for a group that does not exist or is not classic (KIP-1043);
earlier versions return it as Dead, without an error. Needs DESCRIBE on each group.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import compress
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.authorized_operations import NOT_REQUESTED, compute_authorized_operations
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import LongAnswer, compute_each, handle_in_slices, reply_in_slices
from model.access.acls import Operation, ResourceType
from model.commands.groups import DescribeGroups
from model.errors import ErrorCode, GroupError
from model.ids import GroupId
from model.responses.groups import (
    DescribedClassicGroup,
    DescribedClassicMember,
    DescribeGroupsResponse,
)

KEY = 15
wire = response_schema(KEY)

FIRST_NOT_FOUND_VERSION: Final = 6


def handle(context: RequestContext, request: Any) -> None:
    """Describe the groups in request order; an unauthorized group fails by itself."""
    handle_in_slices(context, _describe_all(context, request))


def _describe_all(context: RequestContext, request: Any) -> Steps[None]:
    with_operations = getattr(request, "include_authorized_operations", False)
    allowed = yield from compute_each(
        partial(context.authorized, Operation.DESCRIBE, ResourceType.GROUP), request.groups
    )
    asked = tuple(map(GroupId, compress(request.groups, allowed)))

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
            return
        assert isinstance(answer, DescribeGroupsResponse)
        described = iter(answer.groups)
        groups = (
            _describe(context, next(described), with_operations)
            if may
            else _refuse(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for group_id, may in zip(request.groups, allowed, strict=True)
        )
        reply_in_slices(context, _make(context, len(allowed), groups))

    context.submit(DescribeGroups(context.caller, asked), on_answer)


def _make(context: RequestContext, count: int, groups: Iterable[Any]) -> Steps[Any]:
    source = wire.DescribedGroup
    rows = yield from LongAnswer(context).encode(source, ("groups",), count, groups)
    return wire.DescribeGroupsResponse(throttle_time=0, groups=rows)


def _describe(context: RequestContext, group: DescribedClassicGroup, with_operations: bool) -> Any:
    code = group.error
    if code is ErrorCode.GROUP_ID_NOT_FOUND and context.version < FIRST_NOT_FOUND_VERSION:
        code = ErrorCode.NONE
    return wire.DescribedGroup(
        error_code=code,
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=[_member(member) for member in group.members],
        authorized_operations=compute_authorized_operations(
            context, ResourceType.GROUP, group.group_id, with_operations and not code
        ),
    )


def _member(member: DescribedClassicMember) -> Any:
    return wire.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )


def _refuse(group_id: str, code: ErrorCode) -> Any:
    return wire.DescribedGroup(
        error_code=code,
        group_id=group_id,
        group_state="",
        protocol_type="",
        protocol_data="",
        members=(),
        authorized_operations=NOT_REQUESTED,
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every group."""
    groups = [_refuse(group_id, code) for group_id in request.groups]
    return wire.DescribeGroupsResponse(throttle_time=0, groups=groups)


API = Api(
    key=KEY, name="DescribeGroups", versions=range(7), handler=handle, failed=failed, is_large=True
)
