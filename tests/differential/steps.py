"""What a sequence may do. A step names groups, members and topics by number or by a short name, and
never partitions that a side chose: "what it was told to own", "one that it does not hold".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias


class Epoch(Enum):
    """Which epoch a member says."""

    CURRENT = auto()
    PREVIOUS = auto()
    """The one before; the current one where there was none."""
    AHEAD = auto()
    BEHIND = auto()
    """Two behind the current one, but above 0."""
    NONE = auto()
    """-1: that of clients that are no members."""
    ODD = auto()
    """-3, which no client may say."""


class Owned(Enum):
    """Which partitions a member says that it owns."""

    UNSAID = auto()
    TOLD = auto()
    PREVIOUS = auto()
    """What it was told the last time but one."""
    LESS = auto()
    """What it was told, but for one."""
    MORE = auto()
    """What it was told, and one more."""
    NOTHING = auto()


class Flaw(Enum):
    """What is wrong with a join."""

    OWNED_UNSAID = auto()
    OWNED_SOMETHING = auto()
    NO_TOPICS = auto()
    NO_TIMEOUT = auto()
    UNKNOWN_ASSIGNOR = auto()
    NO_MEMBER_ID = auto()
    NO_GROUP_ID = auto()
    EMPTY_INSTANCE_ID = auto()
    EMPTY_RACK = auto()
    BAD_PATTERN = auto()


class Chosen(Enum):
    """Of which partitions a commit is."""

    HELD = auto()
    """All that the member was told to own."""
    OTHER = auto()
    """One of its topics that it was not told to own."""
    NAMED = auto()
    """The first two of a topic."""
    MISSING = auto()
    """One that no topic has."""


@dataclass(frozen=True, slots=True)
class Join:
    """A heartbeat at epoch 0. ``instance`` is a number; a pattern is of this sequence's topics."""

    group: int
    member: int
    topics: tuple[str, ...] = ()
    instance: int | None = None
    assignor: str | None = None
    pattern: str | None = None
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat; with ``topics`` or ``pattern`` it changes the subscription, "" is no pattern.

    ``is_former`` is the process that was this member before.
    """

    group: int
    member: int
    epoch: Epoch = Epoch.CURRENT
    owned: Owned = Owned.TOLD
    topics: tuple[str, ...] | None = None
    assignor: str | None = None
    is_full: bool = False
    is_former: bool = False
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """Epoch -1, or -2 of a static member that is to return."""

    group: int
    member: int
    is_static: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """LeaveGroup by an administrator, by member id or by instance id."""

    group: int
    member: int
    by_instance: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a member, or of nobody."""

    group: int
    member: int | None
    offset: int
    topic: str
    epoch: Epoch = Epoch.CURRENT
    chosen: Chosen = Chosen.NAMED
    version: int = 9
    metadata_chars: int = 1
    is_former: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch of a member, or of nobody; of all offsets where no topic is named."""

    group: int
    member: int | None
    topic: str | None = None
    epoch: Epoch = Epoch.CURRENT
    version: int = 9


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """OffsetDelete of the first three partitions of a topic."""

    group: int
    topic: str


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    group: int


@dataclass(frozen=True, slots=True)
class CreateTopic:
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class GrowTopic:
    topic: str
    by: int


@dataclass(frozen=True, slots=True)
class DropTopic:
    topic: str


@dataclass(frozen=True, slots=True)
class Expire:
    """A member is silent for longer than its session; a static one may have said that it leaves."""

    group: int
    member: int
    is_static: bool = False


@dataclass(frozen=True, slots=True)
class Linger:
    """A member is told to give partitions up, as another joins, and does not in time."""

    group: int
    member: int
    joiner: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settle:
    """Every member does what it is told until nothing changes any more."""

    group: int


@dataclass(frozen=True, slots=True)
class Look:
    """ConsumerGroupDescribe."""

    group: int


Step: TypeAlias = (
    Join
    | Beat
    | Leave
    | Remove
    | Commit
    | Fetch
    | DeleteOffsets
    | DeleteGroup
    | CreateTopic
    | GrowTopic
    | DropTopic
    | Expire
    | Linger
    | Settle
    | Look
)
