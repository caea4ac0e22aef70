"""AlterUserScramCredentials (51), version 0: sets and deletes credentials of users.

Needs ALTER on the cluster. Each user has its own result. The client sends a salted password, of
which only the keys of RFC 5802 are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, LongAnswer, handle_in_slices, pace, reply_in_slices
from gateway.topic_requests import Gather
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.access.scram import MECHANISMS, ScramCredential, ScramMechanism
from model.commands.users import (
    ALTERATIONS_PER_COMMAND_MAX,
    AlterUserScramCredentials,
    ScramDeletion,
    ScramUpsertion,
)
from model.errors import ClusterAuthorizationFailed, ErrorCode, GroupError
from model.responses.users import AlterUserScramCredentialsResponse
from security.scram_keys import compute_credential

KEY = 51
wire = response_schema(KEY)

SALTED_PASSWORD_BYTES_MAX: Final = 1_024
"""It has the size of a hash; of any other it could not be right."""
PER_USER_MAX: Final = 2
"""Changes of a user that can make a difference: the second one is an error, whatever follows."""

Change: TypeAlias = ScramDeletion | ScramUpsertion


def handle(context: RequestContext, request: Any) -> None:
    """Change the credentials that may be changed."""
    if not context.authorized(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        refusal = ClusterAuthorizationFailed("Cluster authorization failed.")
        reply_in_slices(context, _refuse(context, request, refusal))
        return
    handle_in_slices(context, _submit(context, request))


def _refuse(context: RequestContext, request: Any, error: GroupError) -> Steps[Any]:
    """In slices: whoever may do nothing here may send many names too."""
    errors: dict[str, GroupError | None] = {}
    for rows in (request.deletions, request.upsertions):
        for row, is_slice_done in pace(rows, SLICE):
            errors[row.name] = error
            if is_slice_done:
                yield
    return (yield from _make(context, errors))


def _submit(context: RequestContext, request: Any) -> Steps[None]:
    by_user: dict[str, list[Change]] = {}
    decoders: tuple[tuple[Callable[[Any], Change], Any], ...] = (
        (_decode_deletion, request.deletions),
        (_decode_upsertion, request.upsertions),
    )
    for decode, rows in decoders:
        for row, is_slice_done in pace(rows, SLICE):
            changes = by_user.setdefault(row.name, [])
            if len(changes) < PER_USER_MAX:
                changes.append(decode(row))
            if is_slice_done:
                yield
    errors: dict[str, GroupError | None] = {}
    gather = Gather[None](context, lambda _: reply_in_slices(context, _make(context, errors)))
    for users in _split(by_user):
        changes = [change for user in users for change in by_user[user]]
        command = AlterUserScramCredentials(
            context.caller,
            tuple(change for change in changes if isinstance(change, ScramDeletion)),
            tuple(change for change in changes if isinstance(change, ScramUpsertion)),
        )
        gather.submit(command, partial(_note, errors, users))
        yield
    gather.close()


def _split(users: Iterable[str]) -> Iterator[list[str]]:
    left = iter(users)
    while taken := list(islice(left, ALTERATIONS_PER_COMMAND_MAX // PER_USER_MAX)):
        yield taken


def _decode_deletion(row: Any) -> ScramDeletion:
    return ScramDeletion(row.name, MECHANISMS.get(row.mechanism))


def _decode_upsertion(row: Any) -> ScramUpsertion:
    mechanism = MECHANISMS.get(row.mechanism)
    return ScramUpsertion(row.name, mechanism, _decode_credential(mechanism, row))


def _decode_credential(mechanism: ScramMechanism | None, row: Any) -> ScramCredential | None:
    if mechanism is None or not 0 < len(row.salted_password) <= SALTED_PASSWORD_BYTES_MAX:
        return None
    return compute_credential(mechanism, row.salt, row.iterations, row.salted_password)


def _note(errors: dict[str, GroupError | None], users: Iterable[str], answer: Answer) -> None:
    if isinstance(answer, GroupError):
        errors.update(dict.fromkeys(users, answer))
        return
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    errors.update(answer.errors)


def _make(context: RequestContext, errors: Mapping[str, GroupError | None]) -> Steps[Any]:
    source = wire.AlterUserScramCredentialsResult
    rows = (_make_result(user, error) for user, error in errors.items())
    encoded = yield from LongAnswer(context).encode(source, ("results",), len(errors), rows)
    return wire.AlterUserScramCredentialsResponse(throttle_time=0, results=encoded)


def _make_result(user: str, error: GroupError | None) -> Any:
    if error is None:
        return _make_coded(user, ErrorCode.NONE, None)
    return _make_coded(user, error.code, error.message)


def _make_coded(user: str, code: ErrorCode, message: str | None) -> Any:
    return wire.AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the change of every user."""
    users = dict.fromkeys(row.name for row in (*request.deletions, *request.upsertions))
    results = [_make_coded(user, code, message) for user in users]
    return wire.AlterUserScramCredentialsResponse(throttle_time=0, results=results)


API = Api(
    key=KEY,
    name="AlterUserScramCredentials",
    versions=range(1),
    handler=handle,
    failed=failed,
    is_large=True,
)
