"""DeleteGroups (42), versions 0 to 2: deletes empty groups of any type, with their offsets.

Needs DELETE on each group. A group that is listed twice has one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import (
    COMMANDS_SLICE,
    LongAnswer,
    handle_in_slices,
    pace,
    reply_in_slices,
)
from gateway.topic_requests import Gather
from model.access.acls import Operation, ResourceType
from model.commands.groups import DeleteGroup
from model.errors import ErrorCode, GroupError
from model.ids import GroupId

KEY = 42
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """Delete the groups; each has its own result."""

    gather = Gather[Any](context, lambda results: reply_in_slices(context, _make(context, results)))
    handle_in_slices(context, _submit(context, request, gather))


def _submit(context: RequestContext, request: Any, gather: Gather[Any]) -> Steps[None]:
    for group_id, is_slice_done in pace(dict.fromkeys(request.groups_names), COMMANDS_SLICE):
        if context.authorized(Operation.DELETE, ResourceType.GROUP, group_id):
            command = DeleteGroup(context.caller, GroupId(group_id))
            gather.submit(command, partial(_compute_result, group_id))
        else:
            gather.add(_make_result(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        if is_slice_done:
            yield
    gather.close()


def _make(context: RequestContext, results: Sequence[Any]) -> Steps[Any]:
    source = wire.DeletableGroupResult
    rows = yield from LongAnswer(context).encode(source, ("results",), len(results), results)
    return wire.DeleteGroupsResponse(throttle_time=0, results=rows)


def _compute_result(group_id: str, answer: Answer) -> Any:
    code = answer.code if isinstance(answer, GroupError) else ErrorCode.NONE
    return _make_result(group_id, code)


def _make_result(group_id: str, code: ErrorCode) -> Any:
    return wire.DeletableGroupResult(group_id=group_id, error_code=code)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every group."""
    results = [_make_result(group_id, code) for group_id in dict.fromkeys(request.groups_names)]
    return wire.DeleteGroupsResponse(throttle_time=0, results=results)


API = Api(
    key=KEY, name="DeleteGroups", versions=range(3), handler=handle, failed=failed, is_large=True
)
