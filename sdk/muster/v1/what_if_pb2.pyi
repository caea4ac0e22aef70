from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WhatIfRequest(_message.Message):
    __slots__ = ("group_id", "add", "remove", "partitions", "assignor", "weights", "protocol", "resume")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    add: int
    remove: _containers.RepeatedScalarFieldContainer[str]
    partitions: _containers.RepeatedCompositeFieldContainer[TopicGrowth]
    assignor: str
    weights: PartitionWeights
    protocol: str
    resume: bool
    def __init__(self, group_id: _Optional[str] = ..., add: _Optional[int] = ..., remove: _Optional[_Iterable[str]] = ..., partitions: _Optional[_Iterable[_Union[TopicGrowth, _Mapping]]] = ..., assignor: _Optional[str] = ..., weights: _Optional[_Union[PartitionWeights, _Mapping]] = ..., protocol: _Optional[str] = ..., resume: _Optional[bool] = ...) -> None: ...

class TopicGrowth(_message.Message):
    __slots__ = ("topic_name", "num_partitions")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    num_partitions: int
    def __init__(self, topic_name: _Optional[str] = ..., num_partitions: _Optional[int] = ...) -> None: ...

class PartitionWeights(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, entries: _Optional[_Iterable[str]] = ...) -> None: ...

class WhatIfResponse(_message.Message):
    __slots__ = ("assignor", "moves", "members", "epochs", "rounds", "waits_for", "truncated")
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    assignor: str
    moves: _containers.RepeatedCompositeFieldContainer[PartitionMove]
    members: _containers.RepeatedCompositeFieldContainer[MemberLoad]
    epochs: int
    rounds: int
    waits_for: _containers.RepeatedScalarFieldContainer[str]
    truncated: bool
    def __init__(self, assignor: _Optional[str] = ..., moves: _Optional[_Iterable[_Union[PartitionMove, _Mapping]]] = ..., members: _Optional[_Iterable[_Union[MemberLoad, _Mapping]]] = ..., epochs: _Optional[int] = ..., rounds: _Optional[int] = ..., waits_for: _Optional[_Iterable[str]] = ..., truncated: _Optional[bool] = ...) -> None: ...

class PartitionMove(_message.Message):
    __slots__ = ("topic_name", "partition", "from_member_id", "to_member_id")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    TO_MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    partition: int
    from_member_id: str
    to_member_id: str
    def __init__(self, topic_name: _Optional[str] = ..., partition: _Optional[int] = ..., from_member_id: _Optional[str] = ..., to_member_id: _Optional[str] = ...) -> None: ...

class MemberLoad(_message.Message):
    __slots__ = ("member_id", "instance_id", "client_id", "partitions_before", "partitions_after")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_AFTER_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    instance_id: str
    client_id: str
    partitions_before: int
    partitions_after: int
    def __init__(self, member_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., client_id: _Optional[str] = ..., partitions_before: _Optional[int] = ..., partitions_after: _Optional[int] = ...) -> None: ...
