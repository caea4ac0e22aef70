from muster.v1 import what_if_pb2 as _what_if_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FreezeGroupRequest(_message.Message):
    __slots__ = ("group_id", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class FreezeGroupResponse(_message.Message):
    __slots__ = ("group_epoch", "moves", "without_target", "moves_count", "without_target_count")
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TARGET_FIELD_NUMBER: _ClassVar[int]
    MOVES_COUNT_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TARGET_COUNT_FIELD_NUMBER: _ClassVar[int]
    group_epoch: int
    moves: _containers.RepeatedCompositeFieldContainer[_what_if_pb2.PartitionMove]
    without_target: _containers.RepeatedScalarFieldContainer[str]
    moves_count: int
    without_target_count: int
    def __init__(self, group_epoch: _Optional[int] = ..., moves: _Optional[_Iterable[_Union[_what_if_pb2.PartitionMove, _Mapping]]] = ..., without_target: _Optional[_Iterable[str]] = ..., moves_count: _Optional[int] = ..., without_target_count: _Optional[int] = ...) -> None: ...

class ResumeGroupRequest(_message.Message):
    __slots__ = ("group_id", "validate_only", "request_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    validate_only: bool
    request_id: str
    def __init__(self, group_id: _Optional[str] = ..., validate_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeGroupResponse(_message.Message):
    __slots__ = ("group_epoch", "frozen_since_ms", "frozen_by", "what_if")
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FROZEN_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    FROZEN_BY_FIELD_NUMBER: _ClassVar[int]
    WHAT_IF_FIELD_NUMBER: _ClassVar[int]
    group_epoch: int
    frozen_since_ms: int
    frozen_by: str
    what_if: _what_if_pb2.WhatIfResponse
    def __init__(self, group_epoch: _Optional[int] = ..., frozen_since_ms: _Optional[int] = ..., frozen_by: _Optional[str] = ..., what_if: _Optional[_Union[_what_if_pb2.WhatIfResponse, _Mapping]] = ...) -> None: ...
