"""CreateAcls (30), versions 1 to 3: puts ACLs in force. Needs ALTER on the cluster.

The valid ones are written a thousand at a time, what is denied first. One that is there already
stays, and is no error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.apis.access.acl_errors import note_error
from gateway.apis.access.acl_fields import check_access, decode_acl
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, LongAnswer, handle_in_slices, pace, reply_in_slices
from gateway.topic_requests import Gather
from model.access.acls import Acl, Operation
from model.commands.access import CreateAcls
from model.errors import ErrorCode, GroupError
from security.acl_selection import split_creations

KEY = 30
wire = response_schema(KEY)

Decoded = Acl | GroupError


def handle(context: RequestContext, request: Any) -> None:
    """Create the ACLs; each has its own result."""
    try:
        check_access(context, Operation.ALTER)
    except GroupError as error:
        context.reply(failed(context, request, error.code, error.message))
        return
    handle_in_slices(context, _submit(context, request))


def _submit(context: RequestContext, request: Any) -> Steps[None]:
    found: list[Decoded] = []
    for creation, is_slice_done in pace(request.creations, SLICE):
        found.append(_decode(creation))
        if is_slice_done:
            yield
    errors: dict[Acl, GroupError] = {}
    gather = Gather[None](
        context, lambda _: reply_in_slices(context, _make(context, found, errors))
    )
    commands = yield from split_creations(each for each in found if isinstance(each, Acl))
    for acls in commands:
        gather.submit(CreateAcls(context.caller, acls), partial(note_error, errors, acls))
        yield
    gather.close()


def _decode(creation: Any) -> Decoded:
    try:
        return decode_acl(creation)
    except GroupError as error:
        return error


def _make(
    context: RequestContext, found: Sequence[Decoded], errors: Mapping[Acl, GroupError]
) -> Steps[Any]:
    rows = (
        _make_result(each if isinstance(each, GroupError) else errors.get(each)) for each in found
    )
    source = wire.AclCreationResult
    encoded = yield from LongAnswer(context).encode(source, ("results",), len(found), rows)
    return wire.CreateAclsResponse(throttle_time=0, results=encoded)


def _make_result(error: GroupError | None) -> Any:
    if error is None:
        return wire.AclCreationResult(error_code=ErrorCode.NONE, error_message=None)
    return wire.AclCreationResult(error_code=error.code, error_message=error.message)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every creation."""
    result = wire.AclCreationResult(error_code=code, error_message=message)
    return wire.CreateAclsResponse(throttle_time=0, results=[result] * len(request.creations))


API = Api(
    key=KEY, name="CreateAcls", versions=range(1, 4), handler=handle, failed=failed, is_large=True
)
