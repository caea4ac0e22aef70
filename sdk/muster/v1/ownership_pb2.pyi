from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Ownership(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OWNERSHIP_UNSPECIFIED: _ClassVar[Ownership]
    OWNERSHIP_OWNER: _ClassVar[Ownership]
    OWNERSHIP_LOST: _ClassVar[Ownership]
    OWNERSHIP_UNKNOWN: _ClassVar[Ownership]
OWNERSHIP_UNSPECIFIED: Ownership
OWNERSHIP_OWNER: Ownership
OWNERSHIP_LOST: Ownership
OWNERSHIP_UNKNOWN: Ownership

class CheckRequest(_message.Message):
    __slots__ = ("group_id", "topic_name", "partition", "token")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    topic_name: str
    partition: int
    token: int
    def __init__(self, group_id: _Optional[str] = ..., topic_name: _Optional[str] = ..., partition: _Optional[int] = ..., token: _Optional[int] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("ownership",)
    OWNERSHIP_FIELD_NUMBER: _ClassVar[int]
    ownership: Ownership
    def __init__(self, ownership: _Optional[_Union[Ownership, str]] = ...) -> None: ...
