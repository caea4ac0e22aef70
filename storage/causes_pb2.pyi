from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Rebalance(_message.Message):
    __slots__ = ("epoch_before", "is_classic", "cause", "member_id", "client_id", "client_host", "instance_id", "reason", "topic", "causes", "heartbeat_age_ms", "moved", "converged_ms", "held_up")
    EPOCH_BEFORE_FIELD_NUMBER: _ClassVar[int]
    IS_CLASSIC_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    CONVERGED_MS_FIELD_NUMBER: _ClassVar[int]
    HELD_UP_FIELD_NUMBER: _ClassVar[int]
    epoch_before: int
    is_classic: bool
    cause: str
    member_id: str
    client_id: str
    client_host: str
    instance_id: str
    reason: str
    topic: str
    causes: int
    heartbeat_age_ms: int
    moved: int
    converged_ms: int
    held_up: _containers.RepeatedCompositeFieldContainer[HeldUp]
    def __init__(self, epoch_before: _Optional[int] = ..., is_classic: _Optional[bool] = ..., cause: _Optional[str] = ..., member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., client_host: _Optional[str] = ..., instance_id: _Optional[str] = ..., reason: _Optional[str] = ..., topic: _Optional[str] = ..., causes: _Optional[int] = ..., heartbeat_age_ms: _Optional[int] = ..., moved: _Optional[int] = ..., converged_ms: _Optional[int] = ..., held_up: _Optional[_Iterable[_Union[HeldUp, _Mapping]]] = ...) -> None: ...

class HeldUp(_message.Message):
    __slots__ = ("member_id", "client_id", "step", "took_ms")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    client_id: str
    step: int
    took_ms: int
    def __init__(self, member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., step: _Optional[int] = ..., took_ms: _Optional[int] = ...) -> None: ...

class OffsetChange(_message.Message):
    __slots__ = ("kind", "at_ms", "principal", "last", "offsets", "undoes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    UNDOES_FIELD_NUMBER: _ClassVar[int]
    kind: int
    at_ms: int
    principal: str
    last: int
    offsets: int
    undoes: int
    def __init__(self, kind: _Optional[int] = ..., at_ms: _Optional[int] = ..., principal: _Optional[str] = ..., last: _Optional[int] = ..., offsets: _Optional[int] = ..., undoes: _Optional[int] = ...) -> None: ...
