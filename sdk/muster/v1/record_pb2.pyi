from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListRecordsRequest(_message.Message):
    __slots__ = ("group_id", "log_partition", "types", "since_ms", "until_ms", "before_offset", "page_size", "page_token")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_PARTITION_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    log_partition: int
    types: _containers.RepeatedScalarFieldContainer[str]
    since_ms: int
    until_ms: int
    before_offset: int
    page_size: int
    page_token: str
    def __init__(self, group_id: _Optional[str] = ..., log_partition: _Optional[int] = ..., types: _Optional[_Iterable[str]] = ..., since_ms: _Optional[int] = ..., until_ms: _Optional[int] = ..., before_offset: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRecordsResponse(_message.Message):
    __slots__ = ("records", "next_page_token", "log_partition", "end_offset", "reached_offset")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOG_PARTITION_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    REACHED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[LogRecord]
    next_page_token: str
    log_partition: int
    end_offset: int
    reached_offset: int
    def __init__(self, records: _Optional[_Iterable[_Union[LogRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., log_partition: _Optional[int] = ..., end_offset: _Optional[int] = ..., reached_offset: _Optional[int] = ...) -> None: ...

class LogRecord(_message.Message):
    __slots__ = ("offset", "timestamp_ms", "base_offset", "producer_id", "producer_epoch", "is_transactional", "type", "key", "value", "key_json", "value_json", "decode_error")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    IS_TRANSACTIONAL_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    KEY_JSON_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    DECODE_ERROR_FIELD_NUMBER: _ClassVar[int]
    offset: int
    timestamp_ms: int
    base_offset: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    type: str
    key: bytes
    value: bytes
    key_json: str
    value_json: str
    decode_error: str
    def __init__(self, offset: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., base_offset: _Optional[int] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., is_transactional: _Optional[bool] = ..., type: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., key_json: _Optional[str] = ..., value_json: _Optional[str] = ..., decode_error: _Optional[str] = ...) -> None: ...
