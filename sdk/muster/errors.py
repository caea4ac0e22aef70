"""The exceptions of the SDK, and the Kafka error codes that it handles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from muster.partitions import TopicPartition
from muster.v1 import types_pb2

ILLEGAL_GENERATION: Final = 22
UNKNOWN_MEMBER_ID: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
GROUP_AUTHORIZATION_FAILED: Final = 30
MEMBER_ID_REQUIRED: Final = 79
FENCED_INSTANCE_ID: Final = 82
STALE_MEMBER_EPOCH: Final = 113
UNRELEASED_INSTANCE_ID: Final = 111
FENCED_MEMBER_EPOCH: Final = 110
THROTTLING_QUOTA_EXCEEDED: Final = 89
FENCING: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, 69, 82})
"""Error codes of a commit or fetch whose member was fenced or has expired."""

PASSING: Final = frozenset({14, 15, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""


class MusterError(Exception):
    """The base of what this package raises. ``code`` is Kafka's, ``reason`` a slug; or 0, ""."""

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(f"{reason}: {message}" if reason and message else reason or message)
        self.code = code
        self.reason = reason


class JoinRefused(MusterError):
    """The server refuses the join, and would refuse it again."""


class AuthenticationFailed(JoinRefused):
    """The server does not accept the credentials: a wrong password, or none that are needed."""


class JoinTimeout(MusterError):
    """The server did not answer the join in time, or could not be reached."""


class MemberLost(MusterError):
    """The member was fenced, has expired or has left, and the call needs a member."""


class PollIntervalExceeded(MemberLost):
    """The application did not call ``poll`` for ``max_poll_interval_ms``; the member has left."""


class CallbackFailed(MusterError):
    """A callback of the application raised an exception, which is the cause."""


class CommitFailed(MusterError):
    """Some partitions were not committed; all others of the commit were."""

    def __init__(self, failures: Mapping[TopicPartition, MusterError]) -> None:
        first = next(iter(failures.items()))
        more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
        super().__init__(f"{first[0]}{more} not committed: {first[1]}", first[1].code)
        self.failures = failures


class ReportFailed(MusterError):
    """The end offsets of some partitions were not taken; all others of the report were."""

    def __init__(self, failures: Mapping[TopicPartition, MusterError]) -> None:
        first = next(iter(failures.items()))
        more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
        super().__init__(f"{first[0]}{more} not reported: {first[1]}", first[1].code)
        self.failures = failures


def find_delay_s(error: types_pb2.Error) -> float:
    """How long the server asks to wait before the request comes again; 0 if it does not say."""
    return error.retry_after_ms / 1_000


def decode_error(error: types_pb2.Error, kind: type[MusterError] = MusterError) -> MusterError:
    """The exception for an error in a response."""
    return kind(error.error_message, error.error_code, error.reason)
