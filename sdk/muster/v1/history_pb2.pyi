from muster.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListOwnershipsRequest(_message.Message):
    __slots__ = ("group_id", "since_ms", "until", "page_size", "page_token")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    since_ms: int
    until: _types_pb2.AsOf
    page_size: int
    page_token: str
    def __init__(self, group_id: _Optional[str] = ..., since_ms: _Optional[int] = ..., until: _Optional[_Union[_types_pb2.AsOf, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListOwnershipsResponse(_message.Message):
    __slots__ = ("begin", "end", "members", "moments", "topics", "next_page_token")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    begin: _types_pb2.LogPosition
    end: _types_pb2.LogPosition
    members: _containers.RepeatedCompositeFieldContainer[OwningMember]
    moments: _containers.RepeatedCompositeFieldContainer[GroupMoment]
    topics: _containers.RepeatedCompositeFieldContainer[TopicLanes]
    next_page_token: str
    def __init__(self, begin: _Optional[_Union[_types_pb2.LogPosition, _Mapping]] = ..., end: _Optional[_Union[_types_pb2.LogPosition, _Mapping]] = ..., members: _Optional[_Iterable[_Union[OwningMember, _Mapping]]] = ..., moments: _Optional[_Iterable[_Union[GroupMoment, _Mapping]]] = ..., topics: _Optional[_Iterable[_Union[TopicLanes, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class OwningMember(_message.Message):
    __slots__ = ("member_id", "client_id", "client_host", "instance_id")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    client_id: str
    client_host: str
    instance_id: str
    def __init__(self, member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., client_host: _Optional[str] = ..., instance_id: _Optional[str] = ...) -> None: ...

class GroupMoment(_message.Message):
    __slots__ = ("log_offset", "timestamp_ms", "group_epoch", "members", "partitions_changed")
    LOG_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    log_offset: int
    timestamp_ms: int
    group_epoch: int
    members: int
    partitions_changed: int
    def __init__(self, log_offset: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., group_epoch: _Optional[int] = ..., members: _Optional[int] = ..., partitions_changed: _Optional[int] = ...) -> None: ...

class TopicLanes(_message.Message):
    __slots__ = ("topic_name", "topic_id", "partitions")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionLane]
    def __init__(self, topic_name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[PartitionLane, _Mapping]]] = ...) -> None: ...

class PartitionLane(_message.Message):
    __slots__ = ("partition", "spans")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    spans: _containers.RepeatedCompositeFieldContainer[OwnershipSpan]
    def __init__(self, partition: _Optional[int] = ..., spans: _Optional[_Iterable[_Union[OwnershipSpan, _Mapping]]] = ...) -> None: ...

class OwnershipSpan(_message.Message):
    __slots__ = ("moment", "owner", "target", "is_revoking")
    MOMENT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    IS_REVOKING_FIELD_NUMBER: _ClassVar[int]
    moment: int
    owner: int
    target: int
    is_revoking: bool
    def __init__(self, moment: _Optional[int] = ..., owner: _Optional[int] = ..., target: _Optional[int] = ..., is_revoking: _Optional[bool] = ...) -> None: ...
