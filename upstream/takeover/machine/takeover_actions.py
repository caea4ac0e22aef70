"""What the machine of a group wants done. Each action that asks something ends in an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from model.places import Place
from upstream.sentinel.sentinel_seat import Seat
from upstream.takeover.machine.group_view import ViewedMember


@dataclass(frozen=True, slots=True)
class Describe:
    """Describe the cluster's group: ``Described`` or ``Unanswered``."""


@dataclass(frozen=True, slots=True)
class NotePlace:
    """Note the place in the log: ``Written`` or ``Refused``."""

    place: Place


@dataclass(frozen=True, slots=True)
class EndWaits:
    """Answer what waits in the cluster for members that are on their way here."""


@dataclass(frozen=True, slots=True)
class Join:
    """Join as the sentinel, on a connection of its own: ``JoinAnswered`` or ``Unanswered``.

    A JoinGroup that still waits is given up first, and its answer is not an event any more.
    ``protocols`` is empty for the sentinel's own protocol with zero-byte metadata.
    """

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sync:
    """Assign all partitions to the sentinel: ``SyncAnswered`` or ``Unanswered``."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class RemoveMembers:
    """Hold commits, and remove members by one LeaveGroup: ``LeaveAnswered`` or ``Unanswered``."""

    members: tuple[ViewedMember, ...]


@dataclass(frozen=True, slots=True)
class LeaveSeat:
    """The sentinel leaves, once the commits under it are answered: ``LeaveAnswered``..."""

    member_id: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Write the group with its members and the place MUSTER: ``Written`` or ``Refused``.

    With a ``leader`` it was Stable in the cluster at this generation: nobody has to join again.
    """

    generation: int
    protocol: str
    members: tuple[ViewedMember, ...]
    leader: str = ""


@dataclass(frozen=True, slots=True)
class BeginReturn:
    """Write the place RETURNING, and tell the members to rejoin: ``Written`` or ``Refused``."""


@dataclass(frozen=True, slots=True)
class CountMembers:
    """Count the members that have not joined there yet: ``StillHere``."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Remove the group here: ``Written`` or ``Refused``."""


@dataclass(frozen=True, slots=True)
class Admit:
    """Submit all that members sent while they were on their way."""


@dataclass(frozen=True, slots=True)
class TurnAway:
    """Answer NOT_COORDINATOR to all that members sent while they were on their way."""


@dataclass(frozen=True, slots=True)
class TakeSeat:
    """From now on heartbeats are sent and offsets committed under this seat."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class GetUp:
    """Nothing more is sent under the seat."""


@dataclass(frozen=True, slots=True)
class CloseJoin:
    """Close the connection of the sentinel's JoinGroup."""


Action: TypeAlias = (
    Describe
    | NotePlace
    | EndWaits
    | Join
    | Sync
    | RemoveMembers
    | LeaveSeat
    | Adopt
    | BeginReturn
    | CountMembers
    | GiveUp
    | Admit
    | TurnAway
    | TakeSeat
    | GetUp
    | CloseJoin
)
