from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Topic(_message.Message):
    __slots__ = ("topic_id", "partitions", "racks")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    RACKS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: int
    racks: _containers.RepeatedCompositeFieldContainer[Racks]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[int] = ..., racks: _Optional[_Iterable[_Union[Racks, _Mapping]]] = ...) -> None: ...

class Racks(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class ProducerIdBlock(_message.Message):
    __slots__ = ("next_producer_id",)
    NEXT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    next_producer_id: int
    def __init__(self, next_producer_id: _Optional[int] = ...) -> None: ...

class TopicDeletion(_message.Message):
    __slots__ = ("topic", "deleted_at_ms", "log_ends")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    DELETED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LOG_ENDS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    deleted_at_ms: int
    log_ends: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., deleted_at_ms: _Optional[int] = ..., log_ends: _Optional[_Iterable[int]] = ...) -> None: ...

class ImportGrace(_message.Message):
    __slots__ = ("imported_at_ms",)
    IMPORTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    imported_at_ms: int
    def __init__(self, imported_at_ms: _Optional[int] = ...) -> None: ...

class TokenStart(_message.Message):
    __slots__ = ("wall_ms",)
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    wall_ms: int
    def __init__(self, wall_ms: _Optional[int] = ...) -> None: ...

class GroupConfigs(_message.Message):
    __slots__ = ("configs", "longest_session_timeout_ms")
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    configs: _containers.RepeatedCompositeFieldContainer[Config]
    longest_session_timeout_ms: int
    def __init__(self, configs: _Optional[_Iterable[_Union[Config, _Mapping]]] = ..., longest_session_timeout_ms: _Optional[int] = ...) -> None: ...

class ProducerState(_message.Message):
    __slots__ = ("producer_epoch", "coordinator_epoch", "last_timestamp", "transaction_since_ms")
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_since_ms: int
    def __init__(self, producer_epoch: _Optional[int] = ..., coordinator_epoch: _Optional[int] = ..., last_timestamp: _Optional[int] = ..., transaction_since_ms: _Optional[int] = ...) -> None: ...

class ClientAssignors(_message.Message):
    __slots__ = ("assignors",)
    ASSIGNORS_FIELD_NUMBER: _ClassVar[int]
    assignors: _containers.RepeatedCompositeFieldContainer[ClientAssignor]
    def __init__(self, assignors: _Optional[_Iterable[_Union[ClientAssignor, _Mapping]]] = ...) -> None: ...

class InstalledMetadata(_message.Message):
    __slots__ = ("assignment_epoch", "assignor", "version", "metadata")
    ASSIGNMENT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    assignment_epoch: int
    assignor: str
    version: int
    metadata: bytes
    def __init__(self, assignment_epoch: _Optional[int] = ..., assignor: _Optional[str] = ..., version: _Optional[int] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class ProducerGroup(_message.Message):
    __slots__ = ("producer_epoch", "timed_out_epoch")
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_epoch: int
    timed_out_epoch: int
    def __init__(self, producer_epoch: _Optional[int] = ..., timed_out_epoch: _Optional[int] = ...) -> None: ...

class ClientAssignor(_message.Message):
    __slots__ = ("name", "minimum_version", "maximum_version", "version", "metadata", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    minimum_version: int
    maximum_version: int
    version: int
    metadata: bytes
    reason: int
    def __init__(self, name: _Optional[str] = ..., minimum_version: _Optional[int] = ..., maximum_version: _Optional[int] = ..., version: _Optional[int] = ..., metadata: _Optional[bytes] = ..., reason: _Optional[int] = ...) -> None: ...

class Config(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Acl(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Quotas(_message.Message):
    __slots__ = ("quotas",)
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    quotas: _containers.RepeatedCompositeFieldContainer[Quota]
    def __init__(self, quotas: _Optional[_Iterable[_Union[Quota, _Mapping]]] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class ScramCredential(_message.Message):
    __slots__ = ("version", "salt", "iterations", "stored_key", "server_key")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    STORED_KEY_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    version: int
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes
    def __init__(self, version: _Optional[int] = ..., salt: _Optional[bytes] = ..., iterations: _Optional[int] = ..., stored_key: _Optional[bytes] = ..., server_key: _Optional[bytes] = ...) -> None: ...

class FakeSaltSecret(_message.Message):
    __slots__ = ("version", "secret")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    version: int
    secret: bytes
    def __init__(self, version: _Optional[int] = ..., secret: _Optional[bytes] = ...) -> None: ...

class GroupPlace(_message.Message):
    __slots__ = ("place", "since_ms", "generation")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    place: int
    since_ms: int
    generation: int
    def __init__(self, place: _Optional[int] = ..., since_ms: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class GroupReset(_message.Message):
    __slots__ = ("group_epoch", "began_ms", "principal", "topics", "set_at_ms", "undoes")
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BEGAN_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    SET_AT_MS_FIELD_NUMBER: _ClassVar[int]
    UNDOES_FIELD_NUMBER: _ClassVar[int]
    group_epoch: int
    began_ms: int
    principal: str
    topics: _containers.RepeatedCompositeFieldContainer[ResetTopic]
    set_at_ms: int
    undoes: int
    def __init__(self, group_epoch: _Optional[int] = ..., began_ms: _Optional[int] = ..., principal: _Optional[str] = ..., topics: _Optional[_Iterable[_Union[ResetTopic, _Mapping]]] = ..., set_at_ms: _Optional[int] = ..., undoes: _Optional[int] = ...) -> None: ...

class GroupFreeze(_message.Message):
    __slots__ = ("since_ms", "principal")
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    since_ms: int
    principal: str
    def __init__(self, since_ms: _Optional[int] = ..., principal: _Optional[str] = ...) -> None: ...

class ResetTopic(_message.Message):
    __slots__ = ("name", "topic_id", "partitions", "offsets", "leader_epochs", "metadata")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    topic_id: bytes
    partitions: _containers.RepeatedScalarFieldContainer[int]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    leader_epochs: _containers.RepeatedScalarFieldContainer[int]
    metadata: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[int]] = ..., offsets: _Optional[_Iterable[int]] = ..., leader_epochs: _Optional[_Iterable[int]] = ..., metadata: _Optional[_Iterable[str]] = ...) -> None: ...
