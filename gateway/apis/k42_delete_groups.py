"""DeleteGroups (42), versions 0 to 2: empty groups of every type, with their offsets.

Needs DELETE on each group. A group that comes twice is deleted once.
"""

from __future__ import annotations

from typing import Any

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.api import Api, RequestContext
from gateway.codec import response_schema
from gateway.topics.requests import Gather
from model.commands import DeleteGroup
from model.errors import ErrorCode, GroupError
from model.ids import GroupId

KEY = 42
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """Delete the groups that the caller may delete; each has its result."""

    def reply(results: Any) -> None:
        context.reply(wire.DeleteGroupsResponse(throttle_time=0, results=results))

    gather = Gather[Any](context, reply)
    for group_id in dict.fromkeys(request.groups_names):
        if context.authorized(Operation.DELETE, ResourceType.GROUP, group_id):
            gather.submit(DeleteGroup(context.caller, GroupId(group_id)), _Result(group_id))
        else:
            gather.add(_make_result(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    gather.close()


class _Result:
    """Makes the result of one group from the answer to its command."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id

    def __call__(self, answer: Answer) -> Any:
        code = answer.code if isinstance(answer, GroupError) else ErrorCode.NONE
        return _make_result(self._group_id, code)


def _make_result(group_id: str, code: ErrorCode) -> Any:
    return wire.DeletableGroupResult(group_id=group_id, error_code=code)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """An error for every group."""
    results = [_make_result(group_id, code) for group_id in dict.fromkeys(request.groups_names)]
    return wire.DeleteGroupsResponse(throttle_time=0, results=results)


API = Api(
    key=KEY, name="DeleteGroups", versions=range(3), handler=handle, failed=failed, is_large=True
)
