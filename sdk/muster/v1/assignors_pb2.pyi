from muster.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

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

class ComputeAssignment(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PrepareAssignment(_message.Message):
    __slots__ = ("member_epoch",)
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    member_epoch: int
    def __init__(self, member_epoch: _Optional[int] = ...) -> None: ...

class PreparedAssignment(_message.Message):
    __slots__ = ("error", "group_epoch", "assignor", "version", "members", "topics")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    group_epoch: int
    assignor: str
    version: int
    members: _containers.RepeatedCompositeFieldContainer[PreparedMember]
    topics: _containers.RepeatedCompositeFieldContainer[PreparedTopic]
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., group_epoch: _Optional[int] = ..., assignor: _Optional[str] = ..., version: _Optional[int] = ..., members: _Optional[_Iterable[_Union[PreparedMember, _Mapping]]] = ..., topics: _Optional[_Iterable[_Union[PreparedTopic, _Mapping]]] = ...) -> None: ...

class PreparedMember(_message.Message):
    __slots__ = ("member_id", "instance_id", "rack_id", "subscribed_topic_names", "reason", "version", "metadata", "partitions")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    RACK_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_TOPIC_NAMES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    instance_id: str
    rack_id: str
    subscribed_topic_names: _containers.RepeatedScalarFieldContainer[str]
    reason: int
    version: int
    metadata: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    def __init__(self, member_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., rack_id: _Optional[str] = ..., subscribed_topic_names: _Optional[_Iterable[str]] = ..., reason: _Optional[int] = ..., version: _Optional[int] = ..., metadata: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ...) -> None: ...

class PreparedTopic(_message.Message):
    __slots__ = ("topic_name", "topic_id", "partitions", "racks")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    RACKS_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    topic_id: bytes
    partitions: int
    racks: _containers.RepeatedCompositeFieldContainer[PartitionRacks]
    def __init__(self, topic_name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[int] = ..., racks: _Optional[_Iterable[_Union[PartitionRacks, _Mapping]]] = ...) -> None: ...

class PartitionRacks(_message.Message):
    __slots__ = ("rack_ids",)
    RACK_IDS_FIELD_NUMBER: _ClassVar[int]
    rack_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, rack_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class InstallAssignment(_message.Message):
    __slots__ = ("member_epoch", "group_epoch", "members", "failure")
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    member_epoch: int
    group_epoch: int
    members: _containers.RepeatedCompositeFieldContainer[ComputedMember]
    failure: str
    def __init__(self, member_epoch: _Optional[int] = ..., group_epoch: _Optional[int] = ..., members: _Optional[_Iterable[_Union[ComputedMember, _Mapping]]] = ..., failure: _Optional[str] = ...) -> None: ...

class ComputedMember(_message.Message):
    __slots__ = ("member_id", "partitions", "version", "metadata")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    partitions: _containers.RepeatedCompositeFieldContainer[_types_pb2.TopicPartitions]
    version: int
    metadata: bytes
    def __init__(self, member_id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[_types_pb2.TopicPartitions, _Mapping]]] = ..., version: _Optional[int] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class InstalledAssignment(_message.Message):
    __slots__ = ("error", "group_epoch")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    error: _types_pb2.Error
    group_epoch: int
    def __init__(self, error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., group_epoch: _Optional[int] = ...) -> None: ...

class ClientAssignment(_message.Message):
    __slots__ = ("assignor", "generation", "version", "metadata", "partitions")
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    assignor: str
    generation: int
    version: int
    metadata: bytes
    partitions: _types_pb2.PartitionSet
    def __init__(self, assignor: _Optional[str] = ..., generation: _Optional[int] = ..., version: _Optional[int] = ..., metadata: _Optional[bytes] = ..., partitions: _Optional[_Union[_types_pb2.PartitionSet, _Mapping]] = ...) -> None: ...
