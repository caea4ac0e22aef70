"""DescribeUserScramCredentials (50), version 0: mechanisms and iterations of users.

Needs DESCRIBE on the cluster. Nothing else of a credential leaves the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, LongAnswer, pace, reply_in_slices
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.access.scram import MECHANISM_CODES, ScramCredential, ScramMechanism
from model.commands.users import DescribeUserScramCredentials
from model.errors import ErrorCode, GroupError
from model.responses.users import DescribeUserScramCredentialsResponse

KEY = 50
wire = response_schema(KEY)

Users: TypeAlias = Mapping[str, Mapping[ScramMechanism, ScramCredential]]

_TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN: Final = "Attempt to describe a user credential that does not exist: "


def handle(context: RequestContext, request: Any) -> None:
    """Describe the users that are named, or all."""
    if not context.authorized(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.reply(failed(context, request, code, None))
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply(failed(context, request, answer.code, answer.message))
            return
        assert isinstance(answer, DescribeUserScramCredentialsResponse)
        reply_in_slices(context, _make_all(context, answer.users, request.users))

    context.submit(DescribeUserScramCredentials(context.caller), on_answer)


def _make_all(context: RequestContext, users: Users, named: Any) -> Steps[Any]:
    are_twice: dict[str, bool] = {}
    for each, is_slice_done in pace(named or (), SLICE):
        are_twice[each.name] = each.name in are_twice
        if is_slice_done:
            yield
    if not named:
        are_twice = dict.fromkeys(users, False)
    source = wire.DescribeUserScramCredentialsResult
    rows = (_make_result(user, users, is_twice) for user, is_twice in are_twice.items())
    encoded = yield from LongAnswer(context).encode(source, ("results",), len(are_twice), rows)
    # Kafka's messages are empty here, and null without a right.
    return _make(ErrorCode.NONE, "", encoded)


def _make_result(user: str, users: Users, is_twice: bool) -> Any:
    if is_twice:
        return _make_failed(user, ErrorCode.DUPLICATE_RESOURCE, _TWICE + user)
    found = users.get(user)
    if found is None:
        return _make_failed(user, ErrorCode.RESOURCE_NOT_FOUND, _UNKNOWN + user)
    infos = tuple(
        wire.CredentialInfo(mechanism=code, iterations=found[mechanism].iterations)
        for mechanism, code in MECHANISM_CODES.items()
        if mechanism in found
    )
    return wire.DescribeUserScramCredentialsResult(
        user=user, error_code=ErrorCode.NONE, error_message="", credential_infos=infos
    )


def _make_failed(user: str, code: ErrorCode, message: str | None) -> Any:
    return wire.DescribeUserScramCredentialsResult(
        user=user, error_code=code, error_message=message, credential_infos=()
    )


def _make(code: ErrorCode, message: str | None, results: Any) -> Any:
    return wire.DescribeUserScramCredentialsResponse(
        throttle_time=0, error_code=code, error_message=message, results=results
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str | None) -> Any:
    """Fail the whole request; as in Kafka there is a result for each user, without its name."""
    return _make(code, message, [_make_failed("", code, message)] * len(request.users or ()))


API = Api(
    key=KEY,
    name="DescribeUserScramCredentials",
    versions=range(1),
    handler=handle,
    failed=failed,
    is_large=True,
)
