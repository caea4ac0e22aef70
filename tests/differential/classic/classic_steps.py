"""What members of the classic protocol do in a sequence. Who leads is up to each side: a step never
names the leader by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from tests.differential.steps import Epoch


class ClassicFlaw(Enum):
    """What is wrong with a JoinGroup."""

    NO_GROUP_ID = auto()
    NO_PROTOCOLS = auto()
    NO_TYPE = auto()
    OTHER_TYPE = auto()
    SHORT_SESSION = auto()
    LONG_SESSION = auto()
    UNKNOWN_MEMBER = auto()
    UNKNOWN_STATIC_MEMBER = auto()


@dataclass(frozen=True, slots=True)
class ClassicJoin:
    """JoinGroup, twice where the first one gives an id; ``stops`` with the id.

    ``is_new`` is a process that knows no member id. ``says_the_same`` as before, if it can.
    """

    group: int
    member: int
    protocols: tuple[str, ...] = ("range",)
    topics: tuple[str, ...] = ("wide2",)
    instance: int | None = None
    is_new: bool = False
    says_the_same: bool = False
    stops: bool = False
    version: int = 9
    embedded: int = 3
    """The version of the embedded subscription."""
    user_data: bytes | None = None
    flaw: ClassicFlaw | None = None


@dataclass(frozen=True, slots=True)
class ClassicSync:
    """SyncGroup of one member, or of all that have not: the leader is last then."""

    group: int
    member: int | None = None
    epoch: Epoch = Epoch.CURRENT
    version: int = 5
    says_another_protocol: bool = False


@dataclass(frozen=True, slots=True)
class ClassicBeat:
    """Heartbeat; ``is_former`` is the process that was this member before."""

    group: int
    member: int
    epoch: Epoch = Epoch.CURRENT
    is_former: bool = False
    version: int = 4


@dataclass(frozen=True, slots=True)
class ClassicLeave:
    """LeaveGroup of one member or more, by member ids or by instance ids."""

    group: int
    members: tuple[int, ...]
    by_instance: bool = False
    version: int = 5


@dataclass(frozen=True, slots=True)
class ClassicCommit:
    """OffsetCommit, or TxnOffsetCommit of a transaction that is then ended."""

    group: int
    member: int
    offset: int
    topic: str
    epoch: Epoch = Epoch.CURRENT
    is_in_transaction: bool = False
    is_former: bool = False
    version: int = 9


@dataclass(frozen=True, slots=True)
class ClassicExpire:
    """A member joins with a short session, as do all others, and is silent then."""

    group: int
    member: int


@dataclass(frozen=True, slots=True)
class ClassicLook:
    """DescribeGroups."""

    group: int
    version: int = 5


ClassicStep: TypeAlias = (
    ClassicJoin
    | ClassicSync
    | ClassicBeat
    | ClassicLeave
    | ClassicCommit
    | ClassicExpire
    | ClassicLook
)
