from muster.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupPlace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_PLACE_UNSPECIFIED: _ClassVar[GroupPlace]
    GROUP_PLACE_UPSTREAM: _ClassVar[GroupPlace]
    GROUP_PLACE_TAKING: _ClassVar[GroupPlace]
    GROUP_PLACE_MUSTER: _ClassVar[GroupPlace]
    GROUP_PLACE_RETURNING: _ClassVar[GroupPlace]
GROUP_PLACE_UNSPECIFIED: GroupPlace
GROUP_PLACE_UPSTREAM: GroupPlace
GROUP_PLACE_TAKING: GroupPlace
GROUP_PLACE_MUSTER: GroupPlace
GROUP_PLACE_RETURNING: GroupPlace

class UpstreamBroker(_message.Message):
    __slots__ = ("node_id", "address", "rack", "relay_address")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    RELAY_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    address: str
    rack: str
    relay_address: str
    def __init__(self, node_id: _Optional[int] = ..., address: _Optional[str] = ..., rack: _Optional[str] = ..., relay_address: _Optional[str] = ...) -> None: ...

class GetUpstreamRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetUpstreamResponse(_message.Message):
    __slots__ = ("cluster_id", "brokers", "reachable", "fault", "release", "features", "has_consumer_protocol", "has_topic_ids", "identity", "offsets_store", "node_address", "takeover_groups")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    REACHABLE_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    HAS_CONSUMER_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HAS_TOPIC_IDS_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_STORE_FIELD_NUMBER: _ClassVar[int]
    NODE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TAKEOVER_GROUPS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    brokers: _containers.RepeatedCompositeFieldContainer[UpstreamBroker]
    reachable: bool
    fault: str
    release: str
    features: _containers.ScalarMap[str, int]
    has_consumer_protocol: bool
    has_topic_ids: bool
    identity: str
    offsets_store: str
    node_address: str
    takeover_groups: str
    def __init__(self, cluster_id: _Optional[str] = ..., brokers: _Optional[_Iterable[_Union[UpstreamBroker, _Mapping]]] = ..., reachable: _Optional[bool] = ..., fault: _Optional[str] = ..., release: _Optional[str] = ..., features: _Optional[_Mapping[str, int]] = ..., has_consumer_protocol: _Optional[bool] = ..., has_topic_ids: _Optional[bool] = ..., identity: _Optional[str] = ..., offsets_store: _Optional[str] = ..., node_address: _Optional[str] = ..., takeover_groups: _Optional[str] = ...) -> None: ...

class Stranger(_message.Message):
    __slots__ = ("member_id", "client_id", "host")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    client_id: str
    host: str
    def __init__(self, member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., host: _Optional[str] = ...) -> None: ...

class UpstreamGroup(_message.Message):
    __slots__ = ("group_id", "place", "since_ms", "step", "sentinel_member_id", "sentinel_generation", "members_here", "members_there", "strangers", "cause", "error", "protocol_type")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SENTINEL_MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    SENTINEL_GENERATION_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_HERE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_THERE_FIELD_NUMBER: _ClassVar[int]
    STRANGERS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    place: GroupPlace
    since_ms: int
    step: str
    sentinel_member_id: str
    sentinel_generation: int
    members_here: int
    members_there: int
    strangers: _containers.RepeatedCompositeFieldContainer[Stranger]
    cause: str
    error: str
    protocol_type: str
    def __init__(self, group_id: _Optional[str] = ..., place: _Optional[_Union[GroupPlace, str]] = ..., since_ms: _Optional[int] = ..., step: _Optional[str] = ..., sentinel_member_id: _Optional[str] = ..., sentinel_generation: _Optional[int] = ..., members_here: _Optional[int] = ..., members_there: _Optional[int] = ..., strangers: _Optional[_Iterable[_Union[Stranger, _Mapping]]] = ..., cause: _Optional[str] = ..., error: _Optional[str] = ..., protocol_type: _Optional[str] = ...) -> None: ...

class ListUpstreamGroupsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "places")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    places: _containers.RepeatedScalarFieldContainer[GroupPlace]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., places: _Optional[_Iterable[_Union[GroupPlace, str]]] = ...) -> None: ...

class ListUpstreamGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[UpstreamGroup]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[UpstreamGroup, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class TakeGroupsRequest(_message.Message):
    __slots__ = ("group_ids", "pattern", "dry_run")
    GROUP_IDS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    group_ids: _containers.RepeatedScalarFieldContainer[str]
    pattern: str
    dry_run: bool
    def __init__(self, group_ids: _Optional[_Iterable[str]] = ..., pattern: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ReleaseGroupsRequest(_message.Message):
    __slots__ = ("group_ids", "all", "dry_run")
    GROUP_IDS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    group_ids: _containers.RepeatedScalarFieldContainer[str]
    all: bool
    dry_run: bool
    def __init__(self, group_ids: _Optional[_Iterable[str]] = ..., all: _Optional[bool] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class GroupReport(_message.Message):
    __slots__ = ("group", "error", "groups")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    group: UpstreamGroup
    error: _types_pb2.Error
    groups: int
    def __init__(self, group: _Optional[_Union[UpstreamGroup, _Mapping]] = ..., error: _Optional[_Union[_types_pb2.Error, _Mapping]] = ..., groups: _Optional[int] = ...) -> None: ...
