from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeLogRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeLogResponse(_message.Message):
    __slots__ = ("cluster_id", "partitions")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    partitions: _containers.RepeatedCompositeFieldContainer[LogPartitionDescription]
    def __init__(self, cluster_id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[LogPartitionDescription, _Mapping]]] = ...) -> None: ...

class LogPartitionDescription(_message.Message):
    __slots__ = ("partition", "history_start", "end_offset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    HISTORY_START_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    partition: int
    history_start: HistoryStart
    end_offset: int
    def __init__(self, partition: _Optional[int] = ..., history_start: _Optional[_Union[HistoryStart, _Mapping]] = ..., end_offset: _Optional[int] = ...) -> None: ...

class HistoryStart(_message.Message):
    __slots__ = ("offset", "before_ms")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BEFORE_MS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    before_ms: int
    def __init__(self, offset: _Optional[int] = ..., before_ms: _Optional[int] = ...) -> None: ...

class ReadLogRequest(_message.Message):
    __slots__ = ("partition", "group_id", "offset", "timestamp_ms", "before_offset", "end_offset", "max_bytes", "with_compacted")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    WITH_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    partition: int
    group_id: str
    offset: int
    timestamp_ms: int
    before_offset: int
    end_offset: int
    max_bytes: int
    with_compacted: bool
    def __init__(self, partition: _Optional[int] = ..., group_id: _Optional[str] = ..., offset: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., before_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., with_compacted: _Optional[bool] = ...) -> None: ...

class ReadLogResponse(_message.Message):
    __slots__ = ("partition", "batches", "next_offset", "end_offset", "history_start")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HISTORY_START_FIELD_NUMBER: _ClassVar[int]
    partition: int
    batches: bytes
    next_offset: int
    end_offset: int
    history_start: HistoryStart
    def __init__(self, partition: _Optional[int] = ..., batches: _Optional[bytes] = ..., next_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., history_start: _Optional[_Union[HistoryStart, _Mapping]] = ...) -> None: ...
