"""How a call without the right credentials ends: UNAUTHENTICATED, with a reason for programs."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, NoReturn

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from coordinator.service.wire.error_statuses import DETAILS_KEY, DOMAIN

REASON_KEY: Final = "muster-reason"
"""The reason once more, for clients that do not read ``google.rpc`` details."""


class Refusal(NamedTuple):
    """A status, its reason in ``ErrorInfo``, and the text for humans."""

    status: grpc.StatusCode
    reason: str
    message: str


NO_CREDENTIALS: Final = Refusal(
    grpc.StatusCode.UNAUTHENTICATED,
    "CREDENTIALS_REQUIRED",
    "this listener needs credentials: send `authorization` in the metadata of the call",
)
WRONG_CREDENTIALS: Final = Refusal(
    grpc.StatusCode.UNAUTHENTICATED,
    "SASL_AUTHENTICATION_FAILED",
    "SASL_AUTHENTICATION_FAILED: the credentials are invalid",
)
EXPIRED_CREDENTIALS: Final = Refusal(
    grpc.StatusCode.UNAUTHENTICATED,
    "CREDENTIALS_EXPIRED",
    "the credentials of this session have ended: open another one with new ones",
)
TOO_MANY_CHECKS: Final = Refusal(
    grpc.StatusCode.UNAVAILABLE,
    "TOO_MANY_AUTHENTICATIONS",
    "too many clients authenticate at a time: try again",
)
CANNOT_VERIFY: Final = Refusal(
    grpc.StatusCode.UNAVAILABLE,
    "CLUSTER_UNREACHABLE",
    "the cluster that checks credentials does not answer: try again",
)


async def refuse(context: grpc.aio.ServicerContext[Any, Any], refusal: Refusal) -> NoReturn:
    """End the call."""
    info = AnyMessage()
    info.Pack(ErrorInfo(reason=refusal.reason, domain=DOMAIN))
    status = Status(code=refusal.status.value[0], message=refusal.message, details=[info])
    trailers = ((DETAILS_KEY, status.SerializeToString()), (REASON_KEY, refusal.reason))
    await context.abort(refusal.status, refusal.message, trailers)
    raise AssertionError("abort returns never")
