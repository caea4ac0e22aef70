from muster.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResetPosition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESET_POSITION_UNSPECIFIED: _ClassVar[ResetPosition]
    RESET_POSITION_EARLIEST: _ClassVar[ResetPosition]
    RESET_POSITION_LATEST: _ClassVar[ResetPosition]
    RESET_POSITION_CURRENT: _ClassVar[ResetPosition]

class OffsetChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OFFSET_CHANGE_KIND_UNSPECIFIED: _ClassVar[OffsetChangeKind]
    OFFSET_CHANGE_KIND_RESET: _ClassVar[OffsetChangeKind]
    OFFSET_CHANGE_KIND_UNDO: _ClassVar[OffsetChangeKind]
    OFFSET_CHANGE_KIND_GROUP_DELETED: _ClassVar[OffsetChangeKind]
    OFFSET_CHANGE_KIND_OFFSETS_DELETED: _ClassVar[OffsetChangeKind]
    OFFSET_CHANGE_KIND_EXPIRED: _ClassVar[OffsetChangeKind]
RESET_POSITION_UNSPECIFIED: ResetPosition
RESET_POSITION_EARLIEST: ResetPosition
RESET_POSITION_LATEST: ResetPosition
RESET_POSITION_CURRENT: ResetPosition
OFFSET_CHANGE_KIND_UNSPECIFIED: OffsetChangeKind
OFFSET_CHANGE_KIND_RESET: OffsetChangeKind
OFFSET_CHANGE_KIND_UNDO: OffsetChangeKind
OFFSET_CHANGE_KIND_GROUP_DELETED: OffsetChangeKind
OFFSET_CHANGE_KIND_OFFSETS_DELETED: OffsetChangeKind
OFFSET_CHANGE_KIND_EXPIRED: OffsetChangeKind

class ResetPlan(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicOffsets]
    def __init__(self, topics: _Optional[_Iterable[_Union[_types_pb2.TopicOffsets, _Mapping]]] = ...) -> None: ...

class ResetOffsetsRequest(_message.Message):
    __slots__ = ("group_id", "topics", "position", "timestamp_ms", "shift_by", "offset", "plan", "other_group_id", "as_of", "undo", "clamp", "create_group", "preview", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    SHIFT_BY_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    OTHER_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    CLAMP_FIELD_NUMBER: _ClassVar[int]
    CREATE_GROUP_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    topics: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    position: ResetPosition
    timestamp_ms: int
    shift_by: int
    offset: int
    plan: ResetPlan
    other_group_id: str
    as_of: _types_pb2.AsOf
    undo: UndoChange
    clamp: bool
    create_group: bool
    preview: str
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., topics: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., position: _Optional[_Union[ResetPosition, str]] = ..., timestamp_ms: _Optional[int] = ..., shift_by: _Optional[int] = ..., offset: _Optional[int] = ..., plan: _Optional[_Union[ResetPlan, _Mapping]] = ..., other_group_id: _Optional[str] = ..., as_of: _Optional[_Union[_types_pb2.AsOf, _Mapping]] = ..., undo: _Optional[_Union[UndoChange, _Mapping]] = ..., clamp: _Optional[bool] = ..., create_group: _Optional[bool] = ..., preview: _Optional[str] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class UndoChange(_message.Message):
    __slots__ = ("log_offset",)
    LOG_OFFSET_FIELD_NUMBER: _ClassVar[int]
    log_offset: int
    def __init__(self, log_offset: _Optional[int] = ...) -> None: ...

class ResetOffsetsResponse(_message.Message):
    __slots__ = ("partitions", "preview", "live", "group_epoch", "undone")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    UNDONE_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[ResetPartition]
    preview: str
    live: bool
    group_epoch: int
    undone: OffsetChange
    def __init__(self, partitions: _Optional[_Iterable[_Union[ResetPartition, _Mapping]]] = ..., preview: _Optional[str] = ..., live: _Optional[bool] = ..., group_epoch: _Optional[int] = ..., undone: _Optional[_Union[OffsetChange, _Mapping]] = ...) -> None: ...

class GetResetRequest(_message.Message):
    __slots__ = ("group_id",)
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    def __init__(self, group_id: _Optional[str] = ...) -> None: ...

class GetResetResponse(_message.Message):
    __slots__ = ("group_epoch", "done", "waits_for")
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    group_epoch: int
    done: bool
    waits_for: _containers.RepeatedCompositeFieldContainer[ResetOwner]
    def __init__(self, group_epoch: _Optional[int] = ..., done: _Optional[bool] = ..., waits_for: _Optional[_Iterable[_Union[ResetOwner, _Mapping]]] = ...) -> None: ...

class ResetOwner(_message.Message):
    __slots__ = ("member_id", "client_id", "client_host")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    client_id: str
    client_host: str
    def __init__(self, member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., client_host: _Optional[str] = ...) -> None: ...

class ResetPartition(_message.Message):
    __slots__ = ("topic_name", "partition", "offset_before", "offset_after", "start_offset", "end_offset", "clamped", "offset_changed")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BEFORE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_AFTER_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CLAMPED_FIELD_NUMBER: _ClassVar[int]
    OFFSET_CHANGED_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    partition: int
    offset_before: int
    offset_after: int
    start_offset: int
    end_offset: int
    clamped: bool
    offset_changed: int
    def __init__(self, topic_name: _Optional[str] = ..., partition: _Optional[int] = ..., offset_before: _Optional[int] = ..., offset_after: _Optional[int] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., clamped: _Optional[bool] = ..., offset_changed: _Optional[int] = ...) -> None: ...

class ListOffsetChangesRequest(_message.Message):
    __slots__ = ("group_id", "page_size", "page_token")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    page_size: int
    page_token: str
    def __init__(self, group_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListOffsetChangesResponse(_message.Message):
    __slots__ = ("changes", "next_page_token", "since_ms")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[OffsetChange]
    next_page_token: str
    since_ms: int
    def __init__(self, changes: _Optional[_Iterable[_Union[OffsetChange, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., since_ms: _Optional[int] = ...) -> None: ...

class OffsetChange(_message.Message):
    __slots__ = ("log_offset", "last_log_offset", "changed_ms", "kind", "principal", "offsets", "undoes")
    LOG_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_LOG_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CHANGED_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    UNDOES_FIELD_NUMBER: _ClassVar[int]
    log_offset: int
    last_log_offset: int
    changed_ms: int
    kind: OffsetChangeKind
    principal: str
    offsets: int
    undoes: int
    def __init__(self, log_offset: _Optional[int] = ..., last_log_offset: _Optional[int] = ..., changed_ms: _Optional[int] = ..., kind: _Optional[_Union[OffsetChangeKind, str]] = ..., principal: _Optional[str] = ..., offsets: _Optional[int] = ..., undoes: _Optional[int] = ...) -> None: ...
