"""Mapping of Kafka's error codes to gRPC statuses and error details.

Calls of members return ``muster.v1.Error`` inside an OK response. Admin calls fail with the status
of ``STATUS_OF`` and ``google.rpc`` details: always ``ErrorInfo``, and ``RetryInfo``, ``BadRequest``
or ``PreconditionFailure`` where they apply.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import (
    BadRequest,
    ErrorInfo,
    PreconditionFailure,
    RetryInfo,
)
from google.rpc.status_pb2 import Status

from model.errors import ErrorCode, GroupError, InvalidRequest, ThrottlingQuotaExceeded
from muster.v1 import types_pb2

DOMAIN: Final = "muster"
RETRY_DELAY_MS: Final = 500
DETAILS_KEY: Final = "grpc-status-details-bin"
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
"""gRPC's own trailer for clients that retry."""

_S = grpc.StatusCode
_E = ErrorCode

STATUS_OF: Final = MappingProxyType(
    {
        _E.UNKNOWN_SERVER_ERROR: _S.INTERNAL,
        _E.NONE: _S.OK,
        _E.OFFSET_OUT_OF_RANGE: _S.OUT_OF_RANGE,
        _E.CORRUPT_MESSAGE: _S.INVALID_ARGUMENT,
        _E.UNKNOWN_TOPIC_OR_PARTITION: _S.NOT_FOUND,
        _E.LEADER_NOT_AVAILABLE: _S.UNAVAILABLE,
        _E.NOT_LEADER_OR_FOLLOWER: _S.UNAVAILABLE,
        _E.REQUEST_TIMED_OUT: _S.DEADLINE_EXCEEDED,
        _E.MESSAGE_TOO_LARGE: _S.INVALID_ARGUMENT,
        _E.OFFSET_METADATA_TOO_LARGE: _S.INVALID_ARGUMENT,
        _E.COORDINATOR_LOAD_IN_PROGRESS: _S.UNAVAILABLE,
        _E.COORDINATOR_NOT_AVAILABLE: _S.UNAVAILABLE,
        _E.NOT_COORDINATOR: _S.UNAVAILABLE,
        _E.INVALID_TOPIC_EXCEPTION: _S.INVALID_ARGUMENT,
        _E.INVALID_REQUIRED_ACKS: _S.INVALID_ARGUMENT,
        _E.INVALID_TIMESTAMP: _S.INVALID_ARGUMENT,
        _E.UNSUPPORTED_SASL_MECHANISM: _S.INVALID_ARGUMENT,
        _E.ILLEGAL_GENERATION: _S.ABORTED,
        _E.INCONSISTENT_GROUP_PROTOCOL: _S.FAILED_PRECONDITION,
        _E.INVALID_GROUP_ID: _S.INVALID_ARGUMENT,
        _E.UNKNOWN_MEMBER_ID: _S.FAILED_PRECONDITION,
        _E.INVALID_SESSION_TIMEOUT: _S.INVALID_ARGUMENT,
        _E.REBALANCE_IN_PROGRESS: _S.ABORTED,
        _E.INVALID_COMMIT_OFFSET_SIZE: _S.INVALID_ARGUMENT,
        _E.TOPIC_AUTHORIZATION_FAILED: _S.PERMISSION_DENIED,
        _E.GROUP_AUTHORIZATION_FAILED: _S.PERMISSION_DENIED,
        _E.CLUSTER_AUTHORIZATION_FAILED: _S.PERMISSION_DENIED,
        _E.SECURITY_DISABLED: _S.FAILED_PRECONDITION,
        _E.ILLEGAL_SASL_STATE: _S.FAILED_PRECONDITION,
        _E.SASL_AUTHENTICATION_FAILED: _S.UNAUTHENTICATED,
        _E.UNSUPPORTED_VERSION: _S.UNIMPLEMENTED,
        _E.TOPIC_ALREADY_EXISTS: _S.ALREADY_EXISTS,
        _E.INVALID_PARTITIONS: _S.INVALID_ARGUMENT,
        _E.INVALID_REPLICATION_FACTOR: _S.INVALID_ARGUMENT,
        _E.INVALID_REPLICA_ASSIGNMENT: _S.INVALID_ARGUMENT,
        _E.INVALID_CONFIG: _S.INVALID_ARGUMENT,
        _E.INVALID_REQUEST: _S.INVALID_ARGUMENT,
        _E.UNSUPPORTED_FOR_MESSAGE_FORMAT: _S.FAILED_PRECONDITION,
        _E.POLICY_VIOLATION: _S.FAILED_PRECONDITION,
        _E.OUT_OF_ORDER_SEQUENCE_NUMBER: _S.ABORTED,
        _E.DUPLICATE_SEQUENCE_NUMBER: _S.ALREADY_EXISTS,
        _E.INVALID_PRODUCER_EPOCH: _S.ABORTED,
        _E.INVALID_TXN_STATE: _S.FAILED_PRECONDITION,
        _E.INVALID_PRODUCER_ID_MAPPING: _S.FAILED_PRECONDITION,
        _E.CONCURRENT_TRANSACTIONS: _S.UNAVAILABLE,
        _E.TRANSACTION_COORDINATOR_FENCED: _S.ABORTED,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _S.PERMISSION_DENIED,
        _E.KAFKA_STORAGE_ERROR: _S.UNAVAILABLE,
        _E.UNKNOWN_PRODUCER_ID: _S.FAILED_PRECONDITION,
        _E.NON_EMPTY_GROUP: _S.FAILED_PRECONDITION,
        _E.GROUP_ID_NOT_FOUND: _S.NOT_FOUND,
        _E.FETCH_SESSION_ID_NOT_FOUND: _S.NOT_FOUND,
        _E.INVALID_FETCH_SESSION_EPOCH: _S.ABORTED,
        _E.FENCED_LEADER_EPOCH: _S.ABORTED,
        _E.UNKNOWN_LEADER_EPOCH: _S.UNAVAILABLE,
        _E.UNSUPPORTED_COMPRESSION_TYPE: _S.INVALID_ARGUMENT,
        _E.MEMBER_ID_REQUIRED: _S.INVALID_ARGUMENT,
        _E.GROUP_MAX_SIZE_REACHED: _S.RESOURCE_EXHAUSTED,
        _E.FENCED_INSTANCE_ID: _S.ABORTED,
        _E.GROUP_SUBSCRIBED_TO_TOPIC: _S.FAILED_PRECONDITION,
        _E.INVALID_RECORD: _S.INVALID_ARGUMENT,
        _E.UNSTABLE_OFFSET_COMMIT: _S.UNAVAILABLE,
        _E.THROTTLING_QUOTA_EXCEEDED: _S.RESOURCE_EXHAUSTED,
        _E.PRODUCER_FENCED: _S.ABORTED,
        _E.RESOURCE_NOT_FOUND: _S.NOT_FOUND,
        _E.DUPLICATE_RESOURCE: _S.ALREADY_EXISTS,
        _E.UNACCEPTABLE_CREDENTIAL: _S.INVALID_ARGUMENT,
        _E.UNKNOWN_TOPIC_ID: _S.NOT_FOUND,
        _E.INCONSISTENT_TOPIC_ID: _S.FAILED_PRECONDITION,
        _E.FENCED_MEMBER_EPOCH: _S.ABORTED,
        _E.UNRELEASED_INSTANCE_ID: _S.FAILED_PRECONDITION,
        _E.UNSUPPORTED_ASSIGNOR: _S.INVALID_ARGUMENT,
        _E.STALE_MEMBER_EPOCH: _S.ABORTED,
        _E.TRANSACTION_ABORTABLE: _S.ABORTED,
        _E.INVALID_REGULAR_EXPRESSION: _S.INVALID_ARGUMENT,
    }
)
"""The gRPC status of every error code."""

RETRIABLE: Final = frozenset(
    {
        _E.COORDINATOR_LOAD_IN_PROGRESS,
        _E.COORDINATOR_NOT_AVAILABLE,
        _E.NOT_COORDINATOR,
        _E.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Transient codes: the same request may succeed when retried."""

FENCING: Final = frozenset(
    {
        _E.UNKNOWN_MEMBER_ID,
        _E.FENCED_MEMBER_EPOCH,
        _E.FENCED_INSTANCE_ID,
        _E.GROUP_ID_NOT_FOUND,
    }
)
"""Codes that fence a member with an epoch above 0: it is not in the group any more."""


TEXT_MAX_BYTES: Final = 1_024
"""A status is in the trailers, with its text up to six times as long. gRPC clients refuse trailers
above 8 KiB, and then show neither; names that a client chose may be longer."""


class InvalidField(InvalidRequest):
    """A field of a request is invalid; ``field`` is its path within the request."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def encode_error(code: ErrorCode, message: str) -> types_pb2.Error:
    """Encode the error of an OK response."""
    return types_pb2.Error(error_code=code, reason=code.name, error_message=message)


def encode_group_error(error: GroupError) -> types_pb2.Error:
    """Encode a ``GroupError`` as the error of an OK response."""
    message = encode_error(error.code, error.message)
    if isinstance(error, ThrottlingQuotaExceeded):
        message.retry_after_ms = error.retry_after_ms
    return message


def compute_status(error: GroupError, metadata: dict[str, str]) -> Status:
    """Compute the status of a failed admin call; ``metadata`` goes into ``ErrorInfo``."""
    status_code = STATUS_OF[error.code]
    # Kafka's error name goes first: many clients show only this text.
    message = f"{error.code.name}: {error.message}" if error.message else error.code.name
    status = Status(code=status_code.value[0], message=_cut(message))
    info = {"kafka_error_code": str(int(error.code))}
    info.update((key, _cut(value)) for key, value in metadata.items())
    details = [ErrorInfo(reason=error.code.name, domain=DOMAIN, metadata=info)]
    for detail in (*details, *_compute_details(error, status_code)):
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _cut(text: str) -> str:
    """The text, truncated."""
    encoded = text[:TEXT_MAX_BYTES].encode()
    if len(encoded) <= TEXT_MAX_BYTES and len(text) <= TEXT_MAX_BYTES:
        return text
    return encoded[: TEXT_MAX_BYTES - 3].decode(errors="ignore") + "..."


def _compute_details(
    error: GroupError, status_code: grpc.StatusCode
) -> tuple[RetryInfo | BadRequest | PreconditionFailure, ...]:
    if isinstance(error, InvalidField):
        violation = BadRequest.FieldViolation(field=error.field, description=_cut(error.message))
        return (BadRequest(field_violations=[violation]),)
    if error.code in RETRIABLE:
        delay = Duration()
        if isinstance(error, ThrottlingQuotaExceeded):
            delay.FromMilliseconds(error.retry_after_ms)
        else:
            delay.FromMilliseconds(RETRY_DELAY_MS)
        return (RetryInfo(retry_delay=delay),)
    if status_code is grpc.StatusCode.FAILED_PRECONDITION:
        failed = PreconditionFailure.Violation(
            type=error.code.name, description=_cut(error.message)
        )
        return (PreconditionFailure(violations=[failed]),)
    return ()
