"""What happens to a group that is taken, kept or given back: the events of its machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from model.errors import ErrorCode
from upstream.takeover.machine.group_view import GroupView


class Ask(Enum):
    """What the cluster is asked."""

    DESCRIBE = "DescribeGroups"
    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    LEAVE = "LeaveGroup"


@dataclass(frozen=True, slots=True)
class MemberTimes:
    """The timeouts with which a member joined, and the generation that it leads, -1 if none."""

    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    led_generation: int = -1


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody asks to take the group. ``may_replace``: even from another Muster, which is dead."""

    cause: str
    may_replace: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """Somebody asks to give the group back, which has no members of the consumer protocol."""

    cause: str
    protocols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """The cluster described the group. ``known`` are members that came through a relay or here."""

    view: GroupView
    known: Mapping[str, MemberTimes]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer came. What was asked may have happened."""

    asked: Ask


@dataclass(frozen=True, slots=True)
class JoinAnswered:
    """The answer to the sentinel's JoinGroup. ``others``: the leader was told of other members.

    ``assigns``: it is the leader, and its SyncGroup gives out assignments.
    """

    code: ErrorCode
    member_id: str = ""
    generation: int = -1
    others: int = 0
    assigns: bool = True


@dataclass(frozen=True, slots=True)
class SyncAnswered:
    """The answer to the sentinel's SyncGroup."""

    code: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveAnswered:
    """The answer to a LeaveGroup: the first error that does not mean that a member is gone."""

    code: ErrorCode


@dataclass(frozen=True, slots=True)
class Written:
    """A command of the machine is in the log."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A command of the machine was refused."""

    message: str


@dataclass(frozen=True, slots=True)
class Heard:
    """A member was heard at Muster's node, with the generation that it believes in, or -1."""

    member_id: str
    generation: int = -1


@dataclass(frozen=True, slots=True)
class SeatLost:
    """The cluster answered a request of the sentinel with this error.

    REQUEST_TIMED_OUT: it did not answer, and must not do late what it was asked. So the sentinel
    joins again, as a new member, and what it sent before is fenced.
    """

    code: ErrorCode


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The group is to be deleted in the cluster, which needs the sentinel out."""


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The group's topics, or their partitions, changed."""


@dataclass(frozen=True, slots=True)
class StillHere:
    """How many members, while the group returns, are members here and have not joined there."""

    count: int


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The deadline was reached."""


Event: TypeAlias = (
    Asked
    | Released
    | Described
    | Unanswered
    | JoinAnswered
    | SyncAnswered
    | LeaveAnswered
    | Written
    | Refused
    | Heard
    | SeatLost
    | Dismissed
    | TopicsChanged
    | StillHere
    | TimePassed
)
