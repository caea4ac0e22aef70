from muster.v1 import assignors_pb2 as _assignors_pb2
from muster.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Subscription(_message.Message):
    __slots__ = ("subscribed_topic_names", "subscribed_topic_regex")
    SUBSCRIBED_TOPIC_NAMES_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_TOPIC_REGEX_FIELD_NUMBER: _ClassVar[int]
    subscribed_topic_names: _containers.RepeatedScalarFieldContainer[str]
    subscribed_topic_regex: str
    def __init__(self, subscribed_topic_names: _Optional[_Iterable[str]] = ..., subscribed_topic_regex: _Optional[str] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("sequence", "actions", "pong")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    actions: _containers.RepeatedCompositeFieldContainer[MemberAction]
    pong: Pong
    def __init__(self, sequence: _Optional[int] = ..., actions: _Optional[_Iterable[_Union[MemberAction, _Mapping]]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ...) -> None: ...

class MemberAction(_message.Message):
    __slots__ = ("group_id", "member_id", "join", "acknowledge", "commit", "leave", "prepare_assignment", "install_assignment")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    PREPARE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    INSTALL_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    member_id: str
    join: Join
    acknowledge: Acknowledge
    commit: Commit
    leave: Leave
    prepare_assignment: _assignors_pb2.PrepareAssignment
    install_assignment: _assignors_pb2.InstallAssignment
    def __init__(self, group_id: _Optional[str] = ..., member_id: _Optional[str] = ..., join: _Optional[_Union[Join, _Mapping]] = ..., acknowledge: _Optional[_Union[Acknowledge, _Mapping]] = ..., commit: _Optional[_Union[Commit, _Mapping]] = ..., leave: _Optional[_Union[Leave, _Mapping]] = ..., prepare_assignment: _Optional[_Union[_assignors_pb2.PrepareAssignment, _Mapping]] = ..., install_assignment: _Optional[_Union[_assignors_pb2.InstallAssignment, _Mapping]] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("join_id", "member_epoch", "rebalance_timeout_ms", "subscription", "owned", "server_assignor", "rack_id", "instance_id", "client_id", "client_assignors", "incarnation")
    JOIN_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    SERVER_ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    RACK_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ASSIGNORS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    join_id: int
    member_epoch: int
    rebalance_timeout_ms: int
    subscription: Subscription
    owned: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    server_assignor: str
    rack_id: str
    instance_id: str
    client_id: str
    client_assignors: _containers.RepeatedCompositeFieldContainer[_assignors_pb2.ClientAssignor]
    incarnation: int
    def __init__(self, join_id: _Optional[int] = ..., member_epoch: _Optional[int] = ..., rebalance_timeout_ms: _Optional[int] = ..., subscription: _Optional[_Union[Subscription, _Mapping]] = ..., owned: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., server_assignor: _Optional[str] = ..., rack_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., client_id: _Optional[str] = ..., client_assignors: _Optional[_Iterable[_Union[_assignors_pb2.ClientAssignor, _Mapping]]] = ..., incarnation: _Optional[int] = ...) -> None: ...

class Acknowledge(_message.Message):
    __slots__ = ("assignment_id", "member_epoch", "owned")
    ASSIGNMENT_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    assignment_id: int
    member_epoch: int
    owned: _types_pb2.PartitionSet
    def __init__(self, assignment_id: _Optional[int] = ..., member_epoch: _Optional[int] = ..., owned: _Optional[_Union[_types_pb2.PartitionSet, _Mapping]] = ...) -> None: ...

class Commit(_message.Message):
    __slots__ = ("correlation_id", "member_epoch", "topics")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    member_epoch: int
    topics: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicOffsets]
    def __init__(self, correlation_id: _Optional[int] = ..., member_epoch: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[_types_pb2.TopicOffsets, _Mapping]]] = ...) -> None: ...

class Leave(_message.Message):
    __slots__ = ("member_epoch", "instance_id")
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    member_epoch: int
    instance_id: str
    def __init__(self, member_epoch: _Optional[int] = ..., instance_id: _Optional[str] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("ping_id",)
    PING_ID_FIELD_NUMBER: _ClassVar[int]
    ping_id: int
    def __init__(self, ping_id: _Optional[int] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("updates", "ping", "renewed_sequence", "closing")
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    RENEWED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CLOSING_FIELD_NUMBER: _ClassVar[int]
    updates: _containers.RepeatedCompositeFieldContainer[MemberUpdate]
    ping: Ping
    renewed_sequence: int
    closing: Closing
    def __init__(self, updates: _Optional[_Iterable[_Union[MemberUpdate, _Mapping]]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., renewed_sequence: _Optional[int] = ..., closing: _Optional[_Union[Closing, _Mapping]] = ...) -> None: ...

class MemberUpdate(_message.Message):
    __slots__ = ("group_id", "member_id", "join_id", "assignment", "fenced", "refused", "left", "commit_result", "compute_assignment", "prepared_assignment", "installed_assignment")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    JOIN_ID_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    COMMIT_RESULT_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    PREPARED_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    member_id: str
    join_id: int
    assignment: Assignment
    fenced: Fenced
    refused: Refused
    left: Left
    commit_result: CommitResult
    compute_assignment: _assignors_pb2.ComputeAssignment
    prepared_assignment: _assignors_pb2.PreparedAssignment
    installed_assignment: _assignors_pb2.InstalledAssignment
    def __init__(self, group_id: _Optional[str] = ..., member_id: _Optional[str] = ..., join_id: _Optional[int] = ..., assignment: _Optional[_Union[Assignment, _Mapping]] = ..., fenced: _Optional[_Union[Fenced, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., left: _Optional[_Union[Left, _Mapping]] = ..., commit_result: _Optional[_Union[CommitResult, _Mapping]] = ..., compute_assignment: _Optional[_Union[_assignors_pb2.ComputeAssignment, _Mapping]] = ..., prepared_assignment: _Optional[_Union[_assignors_pb2.PreparedAssignment, _Mapping]] = ..., installed_assignment: _Optional[_Union[_assignors_pb2.InstalledAssignment, _Mapping]] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("assignment_id", "member_epoch", "assignment", "heartbeat_interval_ms", "session_timeout_ms", "client_assignment", "unknown_topics")
    ASSIGNMENT_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_TOPICS_FIELD_NUMBER: _ClassVar[int]
    assignment_id: int
    member_epoch: int
    assignment: _types_pb2.PartitionSet
    heartbeat_interval_ms: int
    session_timeout_ms: int
    client_assignment: _assignors_pb2.ClientAssignment
    unknown_topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, assignment_id: _Optional[int] = ..., member_epoch: _Optional[int] = ..., assignment: _Optional[_Union[_types_pb2.PartitionSet, _Mapping]] = ..., heartbeat_interval_ms: _Optional[int] = ..., session_timeout_ms: _Optional[int] = ..., client_assignment: _Optional[_Union[_assignors_pb2.ClientAssignment, _Mapping]] = ..., unknown_topics: _Optional[_Iterable[str]] = ...) -> None: ...

class Fenced(_message.Message):
    __slots__ = ("error", "superseded")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    superseded: bool
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., superseded: _Optional[bool] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("error", "retriable")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RETRIABLE_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    retriable: bool
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., retriable: _Optional[bool] = ...) -> None: ...

class Left(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ...) -> None: ...

class CommitResult(_message.Message):
    __slots__ = ("correlation_id", "error", "failures")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    error: _types_pb2.Error
    failures: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicFailures]
    def __init__(self, correlation_id: _Optional[int] = ..., error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., failures: _Optional[_Iterable[_Union[_types_pb2.TopicFailures, _Mapping]]] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("ping_id",)
    PING_ID_FIELD_NUMBER: _ClassVar[int]
    ping_id: int
    def __init__(self, ping_id: _Optional[int] = ...) -> None: ...

class Closing(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "subscription", "server_assignor", "owned", "client_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    RACK_ID_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SERVER_ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str
    rack_id: str
    rebalance_timeout_ms: int
    subscription: Subscription
    server_assignor: str
    owned: _types_pb2.PartitionSet
    client_id: str
    def __init__(self, group_id: _Optional[str] = ..., member_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., instance_id: _Optional[str] = ..., rack_id: _Optional[str] = ..., rebalance_timeout_ms: _Optional[int] = ..., subscription: _Optional[_Union[Subscription, _Mapping]] = ..., server_assignor: _Optional[str] = ..., owned: _Optional[_Union[_types_pb2.PartitionSet, _Mapping]] = ..., client_id: _Optional[str] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("error", "member_id", "member_epoch", "heartbeat_interval_ms", "session_timeout_ms", "assignment")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    session_timeout_ms: int
    assignment: _types_pb2.PartitionSet
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., member_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., heartbeat_interval_ms: _Optional[int] = ..., session_timeout_ms: _Optional[int] = ..., assignment: _Optional[_Union[_types_pb2.PartitionSet, _Mapping]] = ...) -> None: ...

class CommitOffsetsRequest(_message.Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "topics", "client_id", "sequence")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str
    topics: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicOffsets]
    client_id: str
    sequence: int
    def __init__(self, group_id: _Optional[str] = ..., member_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., instance_id: _Optional[str] = ..., topics: _Optional[_Iterable[_Union[_types_pb2.TopicOffsets, _Mapping]]] = ..., client_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class CommitOffsetsResponse(_message.Message):
    __slots__ = ("error", "failures")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    failures: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicFailures]
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., failures: _Optional[_Iterable[_Union[_types_pb2.TopicFailures, _Mapping]]] = ...) -> None: ...

class FetchOffsetsRequest(_message.Message):
    __slots__ = ("group_id", "partitions", "member_id", "member_epoch", "require_stable", "client_id", "as_of", "with_end_offsets")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_STABLE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    WITH_END_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    partitions: _types_pb2.PartitionSet
    member_id: str
    member_epoch: int
    require_stable: bool
    client_id: str
    as_of: _types_pb2.AsOf
    with_end_offsets: bool
    def __init__(self, group_id: _Optional[str] = ..., partitions: _Optional[_Union[_types_pb2.PartitionSet, _Mapping]] = ..., member_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., require_stable: _Optional[bool] = ..., client_id: _Optional[str] = ..., as_of: _Optional[_Union[_types_pb2.AsOf, _Mapping]] = ..., with_end_offsets: _Optional[bool] = ...) -> None: ...

class FetchOffsetsResponse(_message.Message):
    __slots__ = ("error", "topics", "position")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    topics: _containers.RepeatedCompositeFieldContainer[_types_pb2.CommittedTopic]
    position: _types_pb2.LogPosition
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., topics: _Optional[_Iterable[_Union[_types_pb2.CommittedTopic, _Mapping]]] = ..., position: _Optional[_Union[_types_pb2.LogPosition, _Mapping]] = ...) -> None: ...

class ReportEndOffsetsRequest(_message.Message):
    __slots__ = ("topics", "client_id")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicEndOffsets]
    client_id: str
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicEndOffsets, _Mapping]]] = ..., client_id: _Optional[str] = ...) -> None: ...

class TopicEndOffsets(_message.Message):
    __slots__ = ("topic_name", "topic_id", "partitions")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionEndOffset]
    def __init__(self, topic_name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[PartitionEndOffset, _Mapping]]] = ...) -> None: ...

class PartitionEndOffset(_message.Message):
    __slots__ = ("partition", "end_offset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    partition: int
    end_offset: int
    def __init__(self, partition: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class ReportEndOffsetsResponse(_message.Message):
    __slots__ = ("error", "failures", "max_age_ms")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    failures: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicFailures]
    max_age_ms: int
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., failures: _Optional[_Iterable[_Union[_types_pb2.TopicFailures, _Mapping]]] = ..., max_age_ms: _Optional[int] = ...) -> None: ...
