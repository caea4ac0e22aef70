"""Entries of the ledger of rebalances: why a group got a new epoch, and how that went on."""

from __future__ import annotations

from enum import Enum

from model.ids import MemberId
from model.past.causes import Cause
from model.value import value


class HeldUpBy(Enum):
    """What the others waited for."""

    REVOKING = "revoking"
    """The member gave up partitions that others were to get."""
    ACKNOWLEDGING = "acknowledging"
    """The member was the last to learn of its assignment."""
    JOINING = "joining"
    """The member was the last to join the generation of a classic group."""
    ASSIGNING = "assigning"
    """The member, the leader of a classic group, computed the assignments."""


@value
class HeldUp:
    """A member that others waited for, and how long."""

    member_id: MemberId
    client_id: str
    by: HeldUpBy
    took_ms: int


@value
class Rebalance:
    """One rebalance: of ``causes`` causes the first is here.

    Epochs are group epochs, or generations of a classic group. Times are wall ms. ``moved`` is how
    many partitions the assignment moves, ``None`` until there is one. ``converged_ms`` is when all
    members had their partitions, ``None`` if that has not happened, or not before the next epoch.
    """

    at_ms: int
    epoch_before: int
    epoch: int
    is_classic: bool
    cause: Cause
    causes: int = 1
    moved: int | None = None
    converged_ms: int | None = None
    held_up: tuple[HeldUp, ...] = ()


class Ending(Enum):
    """How a rebalance ended."""

    UNKNOWN = "unknown"
    """The server was restarted while it went on."""
    CONVERGED = "converged"
    OVERTAKEN = "overtaken"
    """The next one began before all members had their partitions."""
    GOES_ON = "goes on"


@value
class EndedRebalance:
    """A rebalance, and how it ended; ``ended_ms`` is ``None`` if it has not, or nobody knows."""

    rebalance: Rebalance
    ending: Ending
    ended_ms: int | None = None


@value
class UnreadableRebalance:
    """One whose entry cannot be read: when it began, and its epoch."""

    at_ms: int
    epoch: int
