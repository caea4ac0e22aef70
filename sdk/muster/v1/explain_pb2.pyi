from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RebalanceCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REBALANCE_CAUSE_UNSPECIFIED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_MEMBER_JOINED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_MEMBER_LEFT: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_SESSION_EXPIRED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_REBALANCE_TIMEOUT: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_SUBSCRIPTION_CHANGED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_LEADER_REJOINED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_ASSIGNMENT_FAILED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_REGEX_RESOLVED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_TOPIC_CREATED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_TOPIC_DELETED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_PARTITIONS_ADDED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_RACKS_CHANGED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_ASSIGNOR_CHANGED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_CONFIGS_CHANGED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_NEXT_MOVES: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_MIGRATED: _ClassVar[RebalanceCause]
    REBALANCE_CAUSE_ADMINISTRATOR: _ClassVar[RebalanceCause]

class RebalanceEnding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REBALANCE_ENDING_UNSPECIFIED: _ClassVar[RebalanceEnding]
    REBALANCE_ENDING_CONVERGED: _ClassVar[RebalanceEnding]
    REBALANCE_ENDING_OVERTAKEN: _ClassVar[RebalanceEnding]
    REBALANCE_ENDING_GOES_ON: _ClassVar[RebalanceEnding]
    REBALANCE_ENDING_UNREADABLE: _ClassVar[RebalanceEnding]

class HeldUpStep(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HELD_UP_STEP_UNSPECIFIED: _ClassVar[HeldUpStep]
    HELD_UP_STEP_REVOKING: _ClassVar[HeldUpStep]
    HELD_UP_STEP_ACKNOWLEDGING: _ClassVar[HeldUpStep]
    HELD_UP_STEP_JOINING: _ClassVar[HeldUpStep]
    HELD_UP_STEP_ASSIGNING: _ClassVar[HeldUpStep]
REBALANCE_CAUSE_UNSPECIFIED: RebalanceCause
REBALANCE_CAUSE_MEMBER_JOINED: RebalanceCause
REBALANCE_CAUSE_MEMBER_LEFT: RebalanceCause
REBALANCE_CAUSE_SESSION_EXPIRED: RebalanceCause
REBALANCE_CAUSE_REBALANCE_TIMEOUT: RebalanceCause
REBALANCE_CAUSE_SUBSCRIPTION_CHANGED: RebalanceCause
REBALANCE_CAUSE_LEADER_REJOINED: RebalanceCause
REBALANCE_CAUSE_ASSIGNMENT_FAILED: RebalanceCause
REBALANCE_CAUSE_REGEX_RESOLVED: RebalanceCause
REBALANCE_CAUSE_TOPIC_CREATED: RebalanceCause
REBALANCE_CAUSE_TOPIC_DELETED: RebalanceCause
REBALANCE_CAUSE_PARTITIONS_ADDED: RebalanceCause
REBALANCE_CAUSE_RACKS_CHANGED: RebalanceCause
REBALANCE_CAUSE_ASSIGNOR_CHANGED: RebalanceCause
REBALANCE_CAUSE_CONFIGS_CHANGED: RebalanceCause
REBALANCE_CAUSE_NEXT_MOVES: RebalanceCause
REBALANCE_CAUSE_MIGRATED: RebalanceCause
REBALANCE_CAUSE_ADMINISTRATOR: RebalanceCause
REBALANCE_ENDING_UNSPECIFIED: RebalanceEnding
REBALANCE_ENDING_CONVERGED: RebalanceEnding
REBALANCE_ENDING_OVERTAKEN: RebalanceEnding
REBALANCE_ENDING_GOES_ON: RebalanceEnding
REBALANCE_ENDING_UNREADABLE: RebalanceEnding
HELD_UP_STEP_UNSPECIFIED: HeldUpStep
HELD_UP_STEP_REVOKING: HeldUpStep
HELD_UP_STEP_ACKNOWLEDGING: HeldUpStep
HELD_UP_STEP_JOINING: HeldUpStep
HELD_UP_STEP_ASSIGNING: HeldUpStep

class ExplainGroupRequest(_message.Message):
    __slots__ = ("group_id", "since_ms", "until_ms", "page_size", "page_token")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    since_ms: int
    until_ms: int
    page_size: int
    page_token: str
    def __init__(self, group_id: _Optional[str] = ..., since_ms: _Optional[int] = ..., until_ms: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ExplainGroupResponse(_message.Message):
    __slots__ = ("rebalances", "next_page_token")
    REBALANCES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    rebalances: _containers.RepeatedCompositeFieldContainer[Rebalance]
    next_page_token: str
    def __init__(self, rebalances: _Optional[_Iterable[_Union[Rebalance, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Rebalance(_message.Message):
    __slots__ = ("began_ms", "epoch_before", "epoch", "is_classic", "cause", "causes", "member_id", "client_id", "client_host", "instance_id", "reason", "topic_name", "heartbeat_age_ms", "partitions_moved", "ending", "ended_ms", "held_up")
    BEGAN_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_BEFORE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    IS_CLASSIC_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_MOVED_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    HELD_UP_FIELD_NUMBER: _ClassVar[int]
    began_ms: int
    epoch_before: int
    epoch: int
    is_classic: bool
    cause: RebalanceCause
    causes: int
    member_id: str
    client_id: str
    client_host: str
    instance_id: str
    reason: str
    topic_name: str
    heartbeat_age_ms: int
    partitions_moved: int
    ending: RebalanceEnding
    ended_ms: int
    held_up: _containers.RepeatedCompositeFieldContainer[HeldUp]
    def __init__(self, began_ms: _Optional[int] = ..., epoch_before: _Optional[int] = ..., epoch: _Optional[int] = ..., is_classic: _Optional[bool] = ..., cause: _Optional[_Union[RebalanceCause, str]] = ..., causes: _Optional[int] = ..., member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., client_host: _Optional[str] = ..., instance_id: _Optional[str] = ..., reason: _Optional[str] = ..., topic_name: _Optional[str] = ..., heartbeat_age_ms: _Optional[int] = ..., partitions_moved: _Optional[int] = ..., ending: _Optional[_Union[RebalanceEnding, str]] = ..., ended_ms: _Optional[int] = ..., held_up: _Optional[_Iterable[_Union[HeldUp, _Mapping]]] = ...) -> None: ...

class HeldUp(_message.Message):
    __slots__ = ("member_id", "client_id", "step", "took_ms")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    client_id: str
    step: HeldUpStep
    took_ms: int
    def __init__(self, member_id: _Optional[str] = ..., client_id: _Optional[str] = ..., step: _Optional[_Union[HeldUpStep, str]] = ..., took_ms: _Optional[int] = ...) -> None: ...
