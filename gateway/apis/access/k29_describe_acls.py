"""DescribeAcls (29), versions 1 to 3: the ACLs that a filter means.

Needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.apis.access.acl_fields import (
    check_access,
    compute_pattern_fields,
    compute_rule_fields,
    decode_filter,
)
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import LongAnswer, reply_in_slices
from model.access.acls import Acl, AclFilter, Operation, ResourcePattern
from model.commands.access import DescribeAcls
from model.errors import ErrorCode, GroupError
from model.responses.access import DescribeAclsResponse
from security.acl_selection import group_by_pattern, select_acls

KEY = 29
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """List the ACLs by resource pattern."""
    try:
        check_access(context, Operation.DESCRIBE)
        means = decode_filter(request)
    except GroupError as error:
        context.reply(_make(error.code, error.message))
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply(_make(answer.code, answer.message))
            return
        assert isinstance(answer, DescribeAclsResponse)
        reply_in_slices(context, _make_all(context, answer.acls, means))

    context.submit(DescribeAcls(context.caller), on_answer)


def _make_all(context: RequestContext, acls: Sequence[Acl], means: AclFilter) -> Steps[Any]:
    found = yield from select_acls(acls, means)
    by_pattern = yield from group_by_pattern(found)
    source = wire.DescribeAclsResource
    rows = (_make_resource(*row) for row in by_pattern)
    encoded = yield from LongAnswer(context).encode(source, ("resources",), len(by_pattern), rows)
    return _make(ErrorCode.NONE, None, encoded)


def _make_resource(pattern: ResourcePattern, acls: Sequence[Acl]) -> Any:
    return wire.DescribeAclsResource(
        **compute_pattern_fields(pattern),
        acls=tuple(wire.AclDescription(**compute_rule_fields(acl.rule)) for acl in acls),
    )


def _make(code: ErrorCode, message: str | None, resources: Any = ()) -> Any:
    return wire.DescribeAclsResponse(
        throttle_time=0, error_code=code, error_message=message, resources=resources
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the whole request."""
    return _make(code, message)


API = Api(
    key=KEY, name="DescribeAcls", versions=range(1, 4), handler=handle, failed=failed, is_large=True
)
