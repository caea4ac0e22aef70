from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QuotaEntity(_message.Message):
    __slots__ = ("user", "client_id", "ip")
    USER_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    IP_FIELD_NUMBER: _ClassVar[int]
    user: str
    client_id: str
    ip: str
    def __init__(self, user: _Optional[str] = ..., client_id: _Optional[str] = ..., ip: _Optional[str] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: float
    def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class EntityQuotas(_message.Message):
    __slots__ = ("entity", "quotas")
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    entity: QuotaEntity
    quotas: _containers.RepeatedCompositeFieldContainer[Quota]
    def __init__(self, entity: _Optional[_Union[QuotaEntity, _Mapping]] = ..., quotas: _Optional[_Iterable[_Union[Quota, _Mapping]]] = ...) -> None: ...

class ListQuotasRequest(_message.Message):
    __slots__ = ("entity",)
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    entity: QuotaEntity
    def __init__(self, entity: _Optional[_Union[QuotaEntity, _Mapping]] = ...) -> None: ...

class ListQuotasResponse(_message.Message):
    __slots__ = ("entities",)
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    entities: _containers.RepeatedCompositeFieldContainer[EntityQuotas]
    def __init__(self, entities: _Optional[_Iterable[_Union[EntityQuotas, _Mapping]]] = ...) -> None: ...

class QuotaChange(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: float
    def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class AlterQuotasRequest(_message.Message):
    __slots__ = ("entity", "changes", "validate_only")
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    entity: QuotaEntity
    changes: _containers.RepeatedCompositeFieldContainer[QuotaChange]
    validate_only: bool
    def __init__(self, entity: _Optional[_Union[QuotaEntity, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[QuotaChange, _Mapping]]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class AlterQuotasResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
