"""Kafka's error codes, and the errors that a group operation may raise.

A ``GroupError`` is a response, not a bug: it is raised before any state has changed and becomes an
error code on the Kafka wire and in gRPC responses. Bugs are assertions and end the process.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """Kafka's protocol error codes that Muster returns."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    TRANSACTION_ABORTABLE = 120
    INVALID_REGULAR_EXPRESSION = 128


class GroupError(Exception):
    """An error response: ``code`` for programs, ``message`` for people."""

    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class UnknownServerError(GroupError):
    code = ErrorCode.UNKNOWN_SERVER_ERROR


class CoordinatorLoadInProgress(GroupError):
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailable(GroupError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class LogPartitionStopped(CoordinatorNotAvailable):
    """The log partition takes no commands until the server is restarted."""


class NotCoordinator(GroupError):
    code = ErrorCode.NOT_COORDINATOR


class InvalidGroupId(GroupError):
    code = ErrorCode.INVALID_GROUP_ID


class UnknownMemberId(GroupError):
    code = ErrorCode.UNKNOWN_MEMBER_ID


class MemberRemoved(UnknownMemberId):
    """The member was removed while it waited. JoinGroup then returns no member id."""


class InconsistentGroupProtocol(GroupError):
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidSessionTimeout(GroupError):
    code = ErrorCode.INVALID_SESSION_TIMEOUT


class RebalanceInProgress(GroupError):
    """The member has to rejoin; ``is_held``: it already has, and waits for the others."""

    code = ErrorCode.REBALANCE_IN_PROGRESS

    def __init__(self, message: str, *, is_held: bool = False) -> None:
        super().__init__(message)
        self.is_held = is_held


class MemberIdRequired(GroupError):
    """The member has to rejoin with ``member_id`` (KIP-394)."""

    code = ErrorCode.MEMBER_ID_REQUIRED

    def __init__(self, message: str, member_id: str) -> None:
        super().__init__(message)
        self.member_id = member_id


class AssignmentFailed(GroupError):
    """The leader of a classic group reported that it cannot assign, with its own error code."""

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message)
        self.code = code


class ClusterRefused(GroupError):
    """The cluster that Muster stands in front of refused it, with its own error code."""

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message)
        self.code = code


class ResetRefused(GroupError):
    """Offsets cannot be reset so; ``code`` says which kind of reason there is."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.POLICY_VIOLATION) -> None:
        super().__init__(message)
        self.code = code


class NothingToUndo(GroupError):
    """No such change of offsets is known, or nothing of it is left."""

    code = ErrorCode.RESOURCE_NOT_FOUND


class FreezeRefused(GroupError):
    """Rebalancing of the group is frozen, or cannot be, or is not."""

    code = ErrorCode.POLICY_VIOLATION


class DescriptionFailed(GroupError):
    """A group cannot be described, with the code that its description has."""

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message)
        self.code = code


class IllegalGeneration(GroupError):
    code = ErrorCode.ILLEGAL_GENERATION


class TopicAuthorizationFailed(GroupError):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorizationFailed(GroupError):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class SecurityDisabled(GroupError):
    code = ErrorCode.SECURITY_DISABLED


class UnsupportedSaslMechanism(GroupError):
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class ResourceNotFound(GroupError):
    code = ErrorCode.RESOURCE_NOT_FOUND


class DuplicateResource(GroupError):
    code = ErrorCode.DUPLICATE_RESOURCE


class UnacceptableCredential(GroupError):
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class ClusterAuthorizationFailed(GroupError):
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class UnsupportedVersion(GroupError):
    code = ErrorCode.UNSUPPORTED_VERSION


class InvalidTopic(GroupError):
    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicAlreadyExists(GroupError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS


class UnknownTopicOrPartition(GroupError):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicId(GroupError):
    code = ErrorCode.UNKNOWN_TOPIC_ID


class InconsistentTopicId(GroupError):
    code = ErrorCode.INCONSISTENT_TOPIC_ID


class InvalidPartitions(GroupError):
    code = ErrorCode.INVALID_PARTITIONS


class InvalidConfig(GroupError):
    code = ErrorCode.INVALID_CONFIG


class InvalidRequest(GroupError):
    code = ErrorCode.INVALID_REQUEST


class PolicyViolation(GroupError):
    code = ErrorCode.POLICY_VIOLATION


class NonEmptyGroup(GroupError):
    code = ErrorCode.NON_EMPTY_GROUP


class GroupIdNotFound(GroupError):
    code = ErrorCode.GROUP_ID_NOT_FOUND


class GroupMaxSizeReached(GroupError):
    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class ThrottlingQuotaExceeded(GroupError):
    """``retry_after_ms``: when the request would be within the quota."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class FencedInstanceId(GroupError):
    code = ErrorCode.FENCED_INSTANCE_ID


class UnreleasedInstanceId(GroupError):
    code = ErrorCode.UNRELEASED_INSTANCE_ID


class FencedMemberEpoch(GroupError):
    code = ErrorCode.FENCED_MEMBER_EPOCH


class InvalidRegularExpression(GroupError):
    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class InvalidProducerEpoch(GroupError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class UnknownProducerId(GroupError):
    code = ErrorCode.UNKNOWN_PRODUCER_ID


class TransactionCoordinatorFenced(GroupError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class StaleMemberEpoch(GroupError):
    code = ErrorCode.STALE_MEMBER_EPOCH


class UnsupportedAssignor(GroupError):
    code = ErrorCode.UNSUPPORTED_ASSIGNOR
