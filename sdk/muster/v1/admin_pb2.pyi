from muster.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_TYPE_UNSPECIFIED: _ClassVar[GroupType]
    GROUP_TYPE_CONSUMER: _ClassVar[GroupType]
    GROUP_TYPE_CLASSIC: _ClassVar[GroupType]
    GROUP_TYPE_SHARE: _ClassVar[GroupType]
    GROUP_TYPE_STREAMS: _ClassVar[GroupType]

class GroupState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_STATE_UNSPECIFIED: _ClassVar[GroupState]
    GROUP_STATE_EMPTY: _ClassVar[GroupState]
    GROUP_STATE_ASSIGNING: _ClassVar[GroupState]
    GROUP_STATE_RECONCILING: _ClassVar[GroupState]
    GROUP_STATE_STABLE: _ClassVar[GroupState]
    GROUP_STATE_DEAD: _ClassVar[GroupState]
    GROUP_STATE_PREPARING_REBALANCE: _ClassVar[GroupState]
    GROUP_STATE_COMPLETING_REBALANCE: _ClassVar[GroupState]
    GROUP_STATE_NOT_READY: _ClassVar[GroupState]

class MemberState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMBER_STATE_UNSPECIFIED: _ClassVar[MemberState]
    MEMBER_STATE_STABLE: _ClassVar[MemberState]
    MEMBER_STATE_UNREVOKED_PARTITIONS: _ClassVar[MemberState]
    MEMBER_STATE_UNRELEASED_PARTITIONS: _ClassVar[MemberState]

class GroupOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_ORDER_UNSPECIFIED: _ClassVar[GroupOrder]
    GROUP_ORDER_ID: _ClassVar[GroupOrder]
    GROUP_ORDER_MEMBERS: _ClassVar[GroupOrder]
    GROUP_ORDER_EPOCH: _ClassVar[GroupOrder]
    GROUP_ORDER_STATE: _ClassVar[GroupOrder]
    GROUP_ORDER_TYPE: _ClassVar[GroupOrder]

class MemberProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMBER_PROTOCOL_UNSPECIFIED: _ClassVar[MemberProtocol]
    MEMBER_PROTOCOL_CLASSIC: _ClassVar[MemberProtocol]
    MEMBER_PROTOCOL_CONSUMER: _ClassVar[MemberProtocol]

class ConfigSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_SOURCE_UNSPECIFIED: _ClassVar[ConfigSource]
    CONFIG_SOURCE_GROUP: _ClassVar[ConfigSource]
    CONFIG_SOURCE_SERVER: _ClassVar[ConfigSource]
    CONFIG_SOURCE_DEFAULT: _ClassVar[ConfigSource]

class MigrationVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MIGRATION_VERDICT_UNSPECIFIED: _ClassVar[MigrationVerdict]
    MIGRATION_VERDICT_READY: _ClassVar[MigrationVerdict]
    MIGRATION_VERDICT_WARN: _ClassVar[MigrationVerdict]
    MIGRATION_VERDICT_BLOCKED: _ClassVar[MigrationVerdict]
GROUP_TYPE_UNSPECIFIED: GroupType
GROUP_TYPE_CONSUMER: GroupType
GROUP_TYPE_CLASSIC: GroupType
GROUP_TYPE_SHARE: GroupType
GROUP_TYPE_STREAMS: GroupType
GROUP_STATE_UNSPECIFIED: GroupState
GROUP_STATE_EMPTY: GroupState
GROUP_STATE_ASSIGNING: GroupState
GROUP_STATE_RECONCILING: GroupState
GROUP_STATE_STABLE: GroupState
GROUP_STATE_DEAD: GroupState
GROUP_STATE_PREPARING_REBALANCE: GroupState
GROUP_STATE_COMPLETING_REBALANCE: GroupState
GROUP_STATE_NOT_READY: GroupState
MEMBER_STATE_UNSPECIFIED: MemberState
MEMBER_STATE_STABLE: MemberState
MEMBER_STATE_UNREVOKED_PARTITIONS: MemberState
MEMBER_STATE_UNRELEASED_PARTITIONS: MemberState
GROUP_ORDER_UNSPECIFIED: GroupOrder
GROUP_ORDER_ID: GroupOrder
GROUP_ORDER_MEMBERS: GroupOrder
GROUP_ORDER_EPOCH: GroupOrder
GROUP_ORDER_STATE: GroupOrder
GROUP_ORDER_TYPE: GroupOrder
MEMBER_PROTOCOL_UNSPECIFIED: MemberProtocol
MEMBER_PROTOCOL_CLASSIC: MemberProtocol
MEMBER_PROTOCOL_CONSUMER: MemberProtocol
CONFIG_SOURCE_UNSPECIFIED: ConfigSource
CONFIG_SOURCE_GROUP: ConfigSource
CONFIG_SOURCE_SERVER: ConfigSource
CONFIG_SOURCE_DEFAULT: ConfigSource
MIGRATION_VERDICT_UNSPECIFIED: MigrationVerdict
MIGRATION_VERDICT_READY: MigrationVerdict
MIGRATION_VERDICT_WARN: MigrationVerdict
MIGRATION_VERDICT_BLOCKED: MigrationVerdict

class GroupSummary(_message.Message):
    __slots__ = ("group_id", "group_type", "state", "protocol_type", "members", "group_epoch", "frozen_since_ms")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_TYPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FROZEN_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    group_type: GroupType
    state: GroupState
    protocol_type: str
    members: int
    group_epoch: int
    frozen_since_ms: int
    def __init__(self, group_id: _Optional[str] = ..., group_type: _Optional[_Union[GroupType, str]] = ..., state: _Optional[_Union[GroupState, str]] = ..., protocol_type: _Optional[str] = ..., members: _Optional[int] = ..., group_epoch: _Optional[int] = ..., frozen_since_ms: _Optional[int] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "types", "protocol_types", "pattern", "order", "topic_name", "frozen")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPES_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[GroupState]
    types: _containers.RepeatedScalarFieldContainer[GroupType]
    protocol_types: _containers.RepeatedScalarFieldContainer[str]
    pattern: str
    order: GroupOrder
    topic_name: str
    frozen: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[GroupState, str]]] = ..., types: _Optional[_Iterable[_Union[GroupType, str]]] = ..., protocol_types: _Optional[_Iterable[str]] = ..., pattern: _Optional[str] = ..., order: _Optional[_Union[GroupOrder, str]] = ..., topic_name: _Optional[str] = ..., frozen: _Optional[bool] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token", "total_size")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupSummary]
    next_page_token: str
    total_size: int
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("group_id", "group_type", "state", "protocol_type", "group_epoch", "assignment_epoch", "assignor_name", "members", "protocol", "frozen_since_ms", "frozen_by")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_TYPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNOR_NAME_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    FROZEN_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    FROZEN_BY_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    group_type: GroupType
    state: GroupState
    protocol_type: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: _containers.RepeatedCompositeFieldContainer[GroupMember]
    protocol: str
    frozen_since_ms: int
    frozen_by: str
    def __init__(self, group_id: _Optional[str] = ..., group_type: _Optional[_Union[GroupType, str]] = ..., state: _Optional[_Union[GroupState, str]] = ..., protocol_type: _Optional[str] = ..., group_epoch: _Optional[int] = ..., assignment_epoch: _Optional[int] = ..., assignor_name: _Optional[str] = ..., members: _Optional[_Iterable[_Union[GroupMember, _Mapping]]] = ..., protocol: _Optional[str] = ..., frozen_since_ms: _Optional[int] = ..., frozen_by: _Optional[str] = ...) -> None: ...

class GroupMember(_message.Message):
    __slots__ = ("member_id", "instance_id", "rack_id", "member_epoch", "state", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "assignment", "pending_revocation", "target_assignment", "classic_metadata", "classic_assignment", "protocol", "waits")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    RACK_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_TOPIC_NAMES_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_TOPIC_REGEX_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    PENDING_REVOCATION_FIELD_NUMBER: _ClassVar[int]
    TARGET_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    CLASSIC_METADATA_FIELD_NUMBER: _ClassVar[int]
    CLASSIC_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    instance_id: str
    rack_id: str
    member_epoch: int
    state: MemberState
    client_id: str
    client_host: str
    subscribed_topic_names: _containers.RepeatedScalarFieldContainer[str]
    subscribed_topic_regex: str
    assignment: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    pending_revocation: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    target_assignment: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    classic_metadata: bytes
    classic_assignment: bytes
    protocol: MemberProtocol
    waits: _containers.RepeatedCompositeFieldContainer[MemberWait]
    def __init__(self, member_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., rack_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., state: _Optional[_Union[MemberState, str]] = ..., client_id: _Optional[str] = ..., client_host: _Optional[str] = ..., subscribed_topic_names: _Optional[_Iterable[str]] = ..., subscribed_topic_regex: _Optional[str] = ..., assignment: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., pending_revocation: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., target_assignment: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., classic_metadata: _Optional[bytes] = ..., classic_assignment: _Optional[bytes] = ..., protocol: _Optional[_Union[MemberProtocol, str]] = ..., waits: _Optional[_Iterable[_Union[MemberWait, _Mapping]]] = ...) -> None: ...

class MemberWait(_message.Message):
    __slots__ = ("owner_id", "partitions", "waited_ms", "left_ms")
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    WAITED_MS_FIELD_NUMBER: _ClassVar[int]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    owner_id: str
    partitions: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    waited_ms: int
    left_ms: int
    def __init__(self, owner_id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., waited_ms: _Optional[int] = ..., left_ms: _Optional[int] = ...) -> None: ...

class DescribeGroupRequest(_message.Message):
    __slots__ = ("group_id", "as_of", "include_authorized_operations")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_AUTHORIZED_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    as_of: _types_pb2.AsOf
    include_authorized_operations: bool
    def __init__(self, group_id: _Optional[str] = ..., as_of: _Optional[_Union[_types_pb2.AsOf, _Mapping]] = ..., include_authorized_operations: _Optional[bool] = ...) -> None: ...

class DescribeGroupResponse(_message.Message):
    __slots__ = ("group", "position", "authorized_operations")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    AUTHORIZED_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    group: Group
    position: _types_pb2.LogPosition
    authorized_operations: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ..., position: _Optional[_Union[_types_pb2.LogPosition, _Mapping]] = ..., authorized_operations: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchGroupRequest(_message.Message):
    __slots__ = ("group_id",)
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    def __init__(self, group_id: _Optional[str] = ...) -> None: ...

class WatchGroupResponse(_message.Message):
    __slots__ = ("group", "heartbeat_interval_ms")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    group: Group
    heartbeat_interval_ms: int
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ..., heartbeat_interval_ms: _Optional[int] = ...) -> None: ...

class Topic(_message.Message):
    __slots__ = ("topic_name", "topic_id", "num_partitions", "replica_racks")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICA_RACKS_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    topic_id: bytes
    num_partitions: int
    replica_racks: _containers.RepeatedCompositeFieldContainer[ReplicaRacks]
    def __init__(self, topic_name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., num_partitions: _Optional[int] = ..., replica_racks: _Optional[_Iterable[_Union[ReplicaRacks, _Mapping]]] = ...) -> None: ...

class ReplicaRacks(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class ListTopicsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "topic_name")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    topic_name: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., topic_name: _Optional[str] = ...) -> None: ...

class ListTopicsResponse(_message.Message):
    __slots__ = ("topics", "next_page_token")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[Topic]
    next_page_token: str
    def __init__(self, topics: _Optional[_Iterable[_Union[Topic, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CreateTopicRequest(_message.Message):
    __slots__ = ("topic_name", "num_partitions", "validate_only", "request_id")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    num_partitions: int
    validate_only: bool
    request_id: str
    def __init__(self, topic_name: _Optional[str] = ..., num_partitions: _Optional[int] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: Topic
    def __init__(self, topic: _Optional[_Union[Topic, _Mapping]] = ...) -> None: ...

class GrowTopicRequest(_message.Message):
    __slots__ = ("topic_name", "num_partitions", "validate_only", "request_id")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    num_partitions: int
    validate_only: bool
    request_id: str
    def __init__(self, topic_name: _Optional[str] = ..., num_partitions: _Optional[int] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class GrowTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: Topic
    def __init__(self, topic: _Optional[_Union[Topic, _Mapping]] = ...) -> None: ...

class SetTopicRacksRequest(_message.Message):
    __slots__ = ("topic_name", "replica_racks", "validate_only", "request_id")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    REPLICA_RACKS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    replica_racks: _containers.RepeatedCompositeFieldContainer[ReplicaRacks]
    validate_only: bool
    request_id: str
    def __init__(self, topic_name: _Optional[str] = ..., replica_racks: _Optional[_Iterable[_Union[ReplicaRacks, _Mapping]]] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class SetTopicRacksResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: Topic
    def __init__(self, topic: _Optional[_Union[Topic, _Mapping]] = ...) -> None: ...

class DeleteTopicRequest(_message.Message):
    __slots__ = ("topic_name", "topic_id", "validate_only", "request_id")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    topic_id: bytes
    validate_only: bool
    request_id: str
    def __init__(self, topic_name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: Topic
    def __init__(self, topic: _Optional[_Union[Topic, _Mapping]] = ...) -> None: ...

class DeleteGroupRequest(_message.Message):
    __slots__ = ("group_id", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemberToRemove(_message.Message):
    __slots__ = ("member_id", "instance_id")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    instance_id: str
    def __init__(self, member_id: _Optional[str] = ..., instance_id: _Optional[str] = ...) -> None: ...

class RemoveMembersRequest(_message.Message):
    __slots__ = ("group_id", "members", "reason", "preview", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    members: _containers.RepeatedCompositeFieldContainer[MemberToRemove]
    reason: str
    preview: str
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., members: _Optional[_Iterable[_Union[MemberToRemove, _Mapping]]] = ..., reason: _Optional[str] = ..., preview: _Optional[str] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class RemoveMembersResponse(_message.Message):
    __slots__ = ("members", "remaining", "preview")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[GroupMember]
    remaining: int
    preview: str
    def __init__(self, members: _Optional[_Iterable[_Union[GroupMember, _Mapping]]] = ..., remaining: _Optional[int] = ..., preview: _Optional[str] = ...) -> None: ...

class DeleteOffsetsRequest(_message.Message):
    __slots__ = ("group_id", "topics", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    topics: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., topics: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteOffsetsResponse(_message.Message):
    __slots__ = ("failures",)
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    failures: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicFailures]
    def __init__(self, failures: _Optional[_Iterable[_Union[_types_pb2.TopicFailures, _Mapping]]] = ...) -> None: ...

class GroupConfig(_message.Message):
    __slots__ = ("name", "value", "source", "server_value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SERVER_VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    source: ConfigSource
    server_value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., source: _Optional[_Union[ConfigSource, str]] = ..., server_value: _Optional[str] = ...) -> None: ...

class DescribeGroupConfigsRequest(_message.Message):
    __slots__ = ("group_id",)
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    def __init__(self, group_id: _Optional[str] = ...) -> None: ...

class DescribeGroupConfigsResponse(_message.Message):
    __slots__ = ("configs",)
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    configs: _containers.RepeatedCompositeFieldContainer[GroupConfig]
    def __init__(self, configs: _Optional[_Iterable[_Union[GroupConfig, _Mapping]]] = ...) -> None: ...

class ConfigChange(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class AlterGroupConfigsRequest(_message.Message):
    __slots__ = ("group_id", "changes", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    changes: _containers.RepeatedCompositeFieldContainer[ConfigChange]
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., changes: _Optional[_Iterable[_Union[ConfigChange, _Mapping]]] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class AlterGroupConfigsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MigrationReason(_message.Message):
    __slots__ = ("kind", "detail", "is_blocking")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    IS_BLOCKING_FIELD_NUMBER: _ClassVar[int]
    kind: str
    detail: str
    is_blocking: bool
    def __init__(self, kind: _Optional[str] = ..., detail: _Optional[str] = ..., is_blocking: _Optional[bool] = ...) -> None: ...

class ClientChange(_message.Message):
    __slots__ = ("name", "value", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    reason: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PlannedMember(_message.Message):
    __slots__ = ("member_id", "instance_id", "client_id", "verdict", "reasons", "changes")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    instance_id: str
    client_id: str
    verdict: MigrationVerdict
    reasons: _containers.RepeatedCompositeFieldContainer[MigrationReason]
    changes: _containers.RepeatedCompositeFieldContainer[ClientChange]
    def __init__(self, member_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., client_id: _Optional[str] = ..., verdict: _Optional[_Union[MigrationVerdict, str]] = ..., reasons: _Optional[_Iterable[_Union[MigrationReason, _Mapping]]] = ..., changes: _Optional[_Iterable[_Union[ClientChange, _Mapping]]] = ...) -> None: ...

class PlanMigrationRequest(_message.Message):
    __slots__ = ("group_id",)
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    def __init__(self, group_id: _Optional[str] = ...) -> None: ...

class PlanMigrationResponse(_message.Message):
    __slots__ = ("group_id", "group_type", "state", "protocol_type", "protocol", "policy", "verdict", "reasons", "members")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_TYPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    group_type: GroupType
    state: GroupState
    protocol_type: str
    protocol: str
    policy: str
    verdict: MigrationVerdict
    reasons: _containers.RepeatedCompositeFieldContainer[MigrationReason]
    members: _containers.RepeatedCompositeFieldContainer[PlannedMember]
    def __init__(self, group_id: _Optional[str] = ..., group_type: _Optional[_Union[GroupType, str]] = ..., state: _Optional[_Union[GroupState, str]] = ..., protocol_type: _Optional[str] = ..., protocol: _Optional[str] = ..., policy: _Optional[str] = ..., verdict: _Optional[_Union[MigrationVerdict, str]] = ..., reasons: _Optional[_Iterable[_Union[MigrationReason, _Mapping]]] = ..., members: _Optional[_Iterable[_Union[PlannedMember, _Mapping]]] = ...) -> None: ...

class ConvertToClassicGroupRequest(_message.Message):
    __slots__ = ("group_id", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class ConvertToClassicGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PendingOffset(_message.Message):
    __slots__ = ("group_id", "topic_name", "partition", "offset")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    topic_name: str
    partition: int
    offset: int
    def __init__(self, group_id: _Optional[str] = ..., topic_name: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class Transaction(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "log_partition", "since_ms", "offsets", "times_out_at_ms")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_PARTITION_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    TIMES_OUT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    log_partition: int
    since_ms: int
    offsets: _containers.RepeatedCompositeFieldContainer[PendingOffset]
    times_out_at_ms: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., log_partition: _Optional[int] = ..., since_ms: _Optional[int] = ..., offsets: _Optional[_Iterable[_Union[PendingOffset, _Mapping]]] = ..., times_out_at_ms: _Optional[int] = ...) -> None: ...

class ListTransactionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTransactionsResponse(_message.Message):
    __slots__ = ("transactions",)
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    transactions: _containers.RepeatedCompositeFieldContainer[Transaction]
    def __init__(self, transactions: _Optional[_Iterable[_Union[Transaction, _Mapping]]] = ...) -> None: ...

class EndTransactionRequest(_message.Message):
    __slots__ = ("log_partition", "producer_id", "producer_epoch", "commit", "request_id")
    LOG_PARTITION_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    log_partition: int
    producer_id: int
    producer_epoch: int
    commit: bool
    request_id: str
    def __init__(self, log_partition: _Optional[int] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., commit: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class EndTransactionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
