"""The table of gRPC statuses by error code, and the error details."""

from __future__ import annotations

from typing import Any

import grpc.aio
import pytest
from google.rpc.error_details_pb2 import (
    BadRequest,
    ErrorInfo,
    PreconditionFailure,
    RetryInfo,
)

from coordinator.service.calls.guard import Guard
from coordinator.service.wire.error_statuses import (
    FENCING,
    RETRIABLE,
    STATUS_OF,
    TEXT_MAX_BYTES,
    InvalidField,
    compute_status,
    encode_group_error,
)
from model import errors
from model.errors import (
    AssignmentFailed,
    ClusterRefused,
    DescriptionFailed,
    ErrorCode,
    GroupError,
    MemberIdRequired,
    ThrottlingQuotaExceeded,
    UnknownMemberId,
)
from model.ids import MemberId
from muster import errors as sdk

FIXED = {
    "GROUP_ID_NOT_FOUND": "NOT_FOUND",
    "FENCED_MEMBER_EPOCH": "ABORTED",
    "STALE_MEMBER_EPOCH": "ABORTED",
    "NON_EMPTY_GROUP": "FAILED_PRECONDITION",
    "UNRELEASED_INSTANCE_ID": "FAILED_PRECONDITION",
    "UNKNOWN_MEMBER_ID": "FAILED_PRECONDITION",
    "COORDINATOR_LOAD_IN_PROGRESS": "UNAVAILABLE",
    "INVALID_GROUP_ID": "INVALID_ARGUMENT",
    "INVALID_REGULAR_EXPRESSION": "INVALID_ARGUMENT",
    "UNSUPPORTED_ASSIGNOR": "INVALID_ARGUMENT",
    "GROUP_MAX_SIZE_REACHED": "RESOURCE_EXHAUSTED",
}


def group_errors() -> list[type[GroupError]]:
    found = [GroupError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return found


def test_every_error_code_has_a_status() -> None:
    assert set(STATUS_OF) == set(ErrorCode)
    assert [code for code in ErrorCode if STATUS_OF[code] is grpc.StatusCode.OK] == [ErrorCode.NONE]


def test_the_statuses_that_are_promised() -> None:
    for code, status in FIXED.items():
        assert STATUS_OF[ErrorCode[code]] is grpc.StatusCode[status]


def make_error(kind: type[GroupError]) -> GroupError:
    """An error of this class; some classes take more arguments than a message."""
    if kind is InvalidField:
        return InvalidField("field", "what to do")
    if kind is MemberIdRequired:
        return MemberIdRequired("what to do", MemberId("a"))
    if kind is AssignmentFailed:
        return AssignmentFailed("what to do", ErrorCode.UNKNOWN_SERVER_ERROR)
    if kind is ThrottlingQuotaExceeded:
        return ThrottlingQuotaExceeded("what to do", 1_500)
    if kind is ClusterRefused:
        return ClusterRefused("what to do", ErrorCode.UNKNOWN_SERVER_ERROR)
    if kind is DescriptionFailed:
        return DescriptionFailed("what to do", ErrorCode.UNKNOWN_SERVER_ERROR)
    return kind("what to do")


@pytest.mark.parametrize("kind", group_errors(), ids=lambda kind: kind.__name__)
def test_every_group_error_becomes_a_status_and_an_error(kind: type[GroupError]) -> None:
    error = make_error(kind)
    status = compute_status(error, {"group_id": "billing"})
    assert status.code == STATUS_OF[error.code].value[0] != 0
    assert status.message == f"{error.code.name}: what to do"
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == (error.code.name, "muster")
    assert dict(info.metadata) == {
        "kafka_error_code": str(int(error.code)),
        "group_id": "billing",
    }
    encoded = encode_group_error(error)
    assert (encoded.error_code, encoded.reason) == (int(error.code), error.code.name)
    assert encoded.error_message == "what to do"


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (InvalidField("page_size", "below 0"), BadRequest),
        (errors.CoordinatorLoadInProgress(), RetryInfo),
        (errors.NonEmptyGroup(), PreconditionFailure),
    ],
)
def test_details_say_what_programs_can_use(error: GroupError, detail: type) -> None:
    unpacked = detail()
    assert compute_status(error, {}).details[1].Unpack(unpacked)
    if isinstance(error, InvalidField):
        assert unpacked.field_violations[0].field == "page_size"
    if detail is RetryInfo:
        assert unpacked.retry_delay.ToMilliseconds() == 500


@pytest.mark.parametrize("sign", ["x", "\x1b", "\u20ac", "\U0001f600"])
def test_trailers_stay_below_what_clients_take(sign: str) -> None:
    long = sign * 100_000
    for error in (errors.NonEmptyGroup(long), InvalidField("group_id", long)):
        status = compute_status(error, {"group_id": long})
        assert status.message.startswith(f"{error.code.name}: {sign * 50}")
        assert status.message.endswith("...")
        packed = len(status.SerializeToString()) * 4 // 3
        escaped = sum(1 if 0x20 <= each < 0x7F else 3 for each in status.message.encode())
        assert packed + escaped < 8_000
    exact = "x" * TEXT_MAX_BYTES
    info = ErrorInfo()
    assert compute_status(errors.NonEmptyGroup(), {"group_id": exact}).details[0].Unpack(info)
    assert info.metadata["group_id"] == exact


def test_the_sdk_knows_the_same_codes() -> None:
    assert {int(code) for code in FENCING} == sdk.FENCING
    # Who is over a quota is told for how long, and asks again then.
    assert {int(code) for code in RETRIABLE} == sdk.PASSING | {sdk.THROTTLING_QUOTA_EXCEEDED}
    assert ErrorCode.STALE_MEMBER_EPOCH == sdk.STALE_MEMBER_EPOCH


class Gone:
    """The context of a call whose client has disconnected."""

    async def abort(self, *_: object) -> None:
        raise grpc.aio.InternalError("the status cannot be sent")


async def test_that_a_client_has_gone_before_it_is_told_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: each such call logged a traceback."""
    gone: Any = Gone()
    for error in (UnknownMemberId("m1"), grpc.aio.InternalError("the status cannot be sent")):
        with pytest.raises(grpc.aio.InternalError):
            async with Guard(gone):
                raise error
    assert caplog.text == ""
