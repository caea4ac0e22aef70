from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class CreateBackupRequest(_message.Message):
    __slots__ = ("folder", "with_credentials")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    WITH_CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    folder: str
    with_credentials: bool
    def __init__(self, folder: _Optional[str] = ..., with_credentials: _Optional[bool] = ...) -> None: ...

class CreateBackupResponse(_message.Message):
    __slots__ = ("folder", "cluster_id", "bytes", "files", "next_offsets", "users_left_out")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    USERS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    folder: str
    cluster_id: str
    bytes: int
    files: int
    next_offsets: _containers.RepeatedScalarFieldContainer[int]
    users_left_out: int
    def __init__(self, folder: _Optional[str] = ..., cluster_id: _Optional[str] = ..., bytes: _Optional[int] = ..., files: _Optional[int] = ..., next_offsets: _Optional[_Iterable[int]] = ..., users_left_out: _Optional[int] = ...) -> None: ...
