"""DeleteAcls (31), versions 1 to 3: deletes what filters mean. Needs ALTER on the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.apis.access.acl_errors import note_error
from gateway.apis.access.acl_fields import (
    check_access,
    compute_pattern_fields,
    compute_rule_fields,
    decode_filter,
)
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, LongAnswer, handle_in_slices, pace, reply_in_slices
from gateway.topic_requests import Gather
from model.access.acls import Acl, Operation
from model.commands.access import DeleteAcls, DescribeAcls
from model.errors import ErrorCode, GroupError, InvalidRequest
from model.responses.access import DescribeAclsResponse
from security.acl_selection import select_acls, split_deletions

KEY = 31
wire = response_schema(KEY)

FILTERS_MAX: Final = 1_000
"""A filter looks at every ACL."""
MATCHES_MAX: Final = 50_000
"""Of all filters of a request, which may mean the same ACLs; the last one may go beyond."""

Found: TypeAlias = list[Acl] | GroupError
"""What a filter means, or why it means nothing."""


def handle(context: RequestContext, request: Any) -> None:
    """Delete by each filter; each has its own result."""
    try:
        check_access(context, Operation.ALTER)
    except GroupError as error:
        context.reply(failed(context, request, error.code, error.message))
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply(failed(context, request, answer.code, answer.message))
            return
        assert isinstance(answer, DescribeAclsResponse)
        handle_in_slices(context, _delete(context, request, answer.acls))

    context.submit(DescribeAcls(context.caller), on_answer)


def _delete(context: RequestContext, request: Any, acls: Sequence[Acl]) -> Steps[None]:
    found: list[Found] = []
    left = MATCHES_MAX
    for number, each in enumerate(request.filters):
        of_filter = yield from _find(acls, each, number, left)
        left -= 0 if isinstance(of_filter, GroupError) else len(of_filter)
        found.append(of_filter)
    errors: dict[Acl, GroupError] = {}
    gather = Gather[None](
        context, lambda _: reply_in_slices(context, _make(context, found, errors))
    )
    meant = (acl for each in found if not isinstance(each, GroupError) for acl in each)
    commands = yield from split_deletions(meant)
    for deleted in commands:
        gather.submit(DeleteAcls(context.caller, deleted), partial(note_error, errors, deleted))
        yield
    gather.close()


def _find(acls: Sequence[Acl], source: Any, number: int, left: int) -> Steps[Found]:
    if number >= FILTERS_MAX or left <= 0:
        return InvalidRequest(
            f"A request may have at most {FILTERS_MAX} filters, which mean {MATCHES_MAX} ACLs."
        )
    try:
        means = decode_filter(source)
    except GroupError as error:
        return error
    found = yield from select_acls(acls, means)
    return found


def _make_result(answer: LongAnswer, found: Found, errors: Mapping[Acl, GroupError]) -> Steps[Any]:
    if isinstance(found, GroupError):
        return _make_failed(found.code, found.message)
    for acl, is_slice_done in pace(found if errors else (), SLICE):
        if (error := errors.get(acl)) is not None:
            return _make_failed(error.code, error.message)
        if is_slice_done:
            yield
    source, path = wire.DeleteAclsMatchingAcl, ("filter_results", "matching_acls")
    acls = yield from answer.encode(source, path, len(found), map(_make_acl, found))
    return wire.DeleteAclsFilterResult(
        error_code=ErrorCode.NONE, error_message=None, matching_acls=acls
    )


def _make_acl(acl: Acl) -> Any:
    return wire.DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        **compute_pattern_fields(acl.pattern),
        **compute_rule_fields(acl.rule),
    )


def _make_failed(code: ErrorCode, message: str | None) -> Any:
    return wire.DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=())


def _make(
    context: RequestContext, found: Sequence[Found], errors: Mapping[Acl, GroupError]
) -> Steps[Any]:
    answer, rows = LongAnswer(context), []
    for each in found:
        rows.append((yield from _make_result(answer, each, errors)))
    source = wire.DeleteAclsFilterResult
    encoded = yield from answer.encode(source, ("filter_results",), len(rows), rows)
    return wire.DeleteAclsResponse(throttle_time=0, filter_results=encoded)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every filter."""
    result = _make_failed(code, message)
    return wire.DeleteAclsResponse(throttle_time=0, filter_results=[result] * len(request.filters))


API = Api(
    key=KEY, name="DeleteAcls", versions=range(1, 4), handler=handle, failed=failed, is_large=True
)
