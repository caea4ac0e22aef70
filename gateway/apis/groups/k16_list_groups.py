"""ListGroups (16), versions 0 to 5: lists groups, filtered by state (version 4) and type (5).

A caller with DESCRIBE on the cluster sees all groups, any other those that it may DESCRIBE.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.authorized_operations import may_see
from gateway.codec.encoding import Encoded
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import LongAnswer, reply_in_slices, select_each
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.groups import ListGroups
from model.errors import ErrorCode, GroupError
from model.responses.groups import ListedGroup, ListGroupsResponse

KEY = 16
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """List the groups that the caller may see."""
    command = ListGroups(
        context.caller, getattr(request, "states_filter", ()), getattr(request, "types_filter", ())
    )
    sees_all = may_see(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply_failed(answer.code, answer.message)
            return
        assert isinstance(answer, ListGroupsResponse)
        reply_in_slices(context, _make_list(context, answer.groups, sees_all))

    context.submit(command, on_answer)


def _make_list(
    context: RequestContext, groups: Sequence[ListedGroup], sees_all: bool
) -> Steps[Any]:
    seen = groups if sees_all else (yield from select_each(partial(_may_list, context), groups))
    rows = map(_listed, seen)
    encoded = yield from LongAnswer(context).encode(wire.ListedGroup, ("groups",), len(seen), rows)
    return _make(ErrorCode.NONE, encoded)


def _may_list(context: RequestContext, group: ListedGroup) -> bool:
    return may_see(context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)


def _listed(group: ListedGroup) -> Any:
    return wire.ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state,
        group_type=group.group_type,
    )


def _make(code: ErrorCode, groups: Encoded | Sequence[Any]) -> Any:
    return wire.ListGroupsResponse(throttle_time=0, error_code=code, groups=groups)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the whole request."""
    return _make(code, [])


API = Api(
    key=KEY, name="ListGroups", versions=range(6), handler=handle, failed=failed, is_large=True
)
