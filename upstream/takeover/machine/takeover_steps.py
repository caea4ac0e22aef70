"""The steps of taking a group and of giving it back as one table: (step, sign) to next step.

A sign is what an event means at a step. All that moves a group from step to step is here; a pair
that is missing changes nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Step(Enum):
    """Where the move of a group stands."""

    UPSTREAM = "the cluster has the group"
    LOOKING = "the group is described"
    NOTING = "the place TAKING is noted"
    GATHERING = "the members are on their way here"
    BESIDE = "the sentinel joins beside the members"
    REMOVING = "the members are removed from the cluster's group"
    ALONE = "the sentinel joins with its own protocol, so that others are refused"
    SYNCING = "the sentinel assigns all partitions to itself"
    ADOPTING = "the members are adopted"
    HERE = "Muster has the group"
    CHECKING = "what the cluster has is compared with the place that is noted"
    BACKING_OUT = "the sentinel leaves, after a take that failed"
    UNNOTING = "the place UPSTREAM is noted, after a take that failed"
    OPENING = "the sentinel joins with the members' protocols, so that they can join beside it"
    OPEN_SYNCING = "the sentinel, which is still alone, assigns all partitions to itself"
    RETURNING = "the place RETURNING is noted"
    WAITING = "the members join through the relays"
    LEAVING = "the sentinel leaves"
    GIVING_UP = "the group is removed here"


class Sign(Enum):
    """What an event means."""

    ASKED = "somebody asks to take the group"
    RELEASED = "somebody asks to give the group back"
    MAY_BE_TAKEN = "nothing is in the way"
    NO_MEMBERS = "the cluster's group has no member but perhaps the sentinel"
    ALL_HERE = "all members of the cluster's group have been heard here, or are long silent"
    SENTINEL_BESIDE = "the sentinel is in, and all others have been heard here"
    REMOVED_AFTER_JOIN = "the members are removed, and the sentinel's join was answered before"
    JOINED_ALONE = "the sentinel's join is answered, and it is the only member"
    SYNCED = "the sentinel's SyncGroup was handled; the group is being taken"
    SEATED = "the sentinel's SyncGroup was handled; the group is Muster's"
    WRITTEN = "the log has it"
    SEAT_LOST = "the cluster does not know the sentinel any more"
    DOUBTED = "the seat is another one's: a Muster's, or our own next one"
    FENCED = "another Muster has the seat of a group that is here"
    DISMISSED = "the sentinel is in the way of a deletion"
    TOPICS_CHANGED = "the sentinel's assignment does not show all partitions any more"
    ONCE_MORE = "the same once more"
    AGAIN = "something failed that may go well the next time"
    HOPELESS = "the take cannot go on; the sentinel may be in"
    HOPELESS_OUTSIDE = "the take cannot go on; the sentinel is not in"
    OVERRUN = "the group cannot return, though others are in it already"
    ALL_GONE = "no member is left here"
    LEFT = "the sentinel is out"
    STILL_OURS = "the record says MUSTER, and the seat can be taken"
    HALF_TAKEN = "the record says TAKING, and the sentinel is alone"
    HALF_TAKEN_BESIDE = "the record says TAKING, and the sentinel is beside members"
    HALF_RETURNED = "the record says RETURNING, and the sentinel is alone"
    HALF_RETURNED_BESIDE = "the record says RETURNING, and members are beside the sentinel"


STEPS: Final[dict[tuple[Step, Sign], Step]] = {
    (Step.UPSTREAM, Sign.ASKED): Step.LOOKING,
    (Step.LOOKING, Sign.MAY_BE_TAKEN): Step.NOTING,
    (Step.LOOKING, Sign.HOPELESS): Step.UPSTREAM,
    (Step.NOTING, Sign.WRITTEN): Step.GATHERING,
    (Step.NOTING, Sign.HOPELESS): Step.UPSTREAM,
    (Step.GATHERING, Sign.ALL_HERE): Step.BESIDE,
    (Step.GATHERING, Sign.NO_MEMBERS): Step.ALONE,
    (Step.GATHERING, Sign.HOPELESS): Step.BACKING_OUT,
    (Step.GATHERING, Sign.HOPELESS_OUTSIDE): Step.UNNOTING,
    (Step.BESIDE, Sign.SENTINEL_BESIDE): Step.REMOVING,
    (Step.BESIDE, Sign.JOINED_ALONE): Step.ALONE,
    (Step.BESIDE, Sign.ONCE_MORE): Step.BESIDE,
    (Step.BESIDE, Sign.AGAIN): Step.GATHERING,
    (Step.BESIDE, Sign.HOPELESS): Step.BACKING_OUT,
    (Step.BESIDE, Sign.HOPELESS_OUTSIDE): Step.UNNOTING,
    (Step.REMOVING, Sign.JOINED_ALONE): Step.ALONE,
    (Step.REMOVING, Sign.REMOVED_AFTER_JOIN): Step.ALONE,
    (Step.REMOVING, Sign.AGAIN): Step.GATHERING,
    (Step.REMOVING, Sign.HOPELESS): Step.BACKING_OUT,
    (Step.REMOVING, Sign.HOPELESS_OUTSIDE): Step.UNNOTING,
    (Step.ALONE, Sign.JOINED_ALONE): Step.SYNCING,
    (Step.ALONE, Sign.ONCE_MORE): Step.ALONE,
    (Step.ALONE, Sign.AGAIN): Step.GATHERING,
    (Step.ALONE, Sign.SEAT_LOST): Step.CHECKING,
    (Step.ALONE, Sign.HOPELESS): Step.BACKING_OUT,
    (Step.ALONE, Sign.HOPELESS_OUTSIDE): Step.UNNOTING,
    (Step.ALONE, Sign.FENCED): Step.GIVING_UP,
    (Step.SYNCING, Sign.SYNCED): Step.ADOPTING,
    (Step.SYNCING, Sign.SEATED): Step.HERE,
    (Step.SYNCING, Sign.ONCE_MORE): Step.ALONE,
    (Step.SYNCING, Sign.AGAIN): Step.GATHERING,
    (Step.SYNCING, Sign.SEAT_LOST): Step.CHECKING,
    (Step.SYNCING, Sign.HOPELESS): Step.BACKING_OUT,
    (Step.SYNCING, Sign.HOPELESS_OUTSIDE): Step.UNNOTING,
    (Step.SYNCING, Sign.FENCED): Step.GIVING_UP,
    (Step.ADOPTING, Sign.WRITTEN): Step.HERE,
    (Step.ADOPTING, Sign.HOPELESS): Step.BACKING_OUT,
    (Step.BACKING_OUT, Sign.LEFT): Step.UNNOTING,
    (Step.BACKING_OUT, Sign.ONCE_MORE): Step.BACKING_OUT,
    (Step.UNNOTING, Sign.WRITTEN): Step.UPSTREAM,
    (Step.UNNOTING, Sign.ONCE_MORE): Step.UNNOTING,
    (Step.HERE, Sign.RELEASED): Step.OPENING,
    (Step.HERE, Sign.SEAT_LOST): Step.ALONE,
    (Step.HERE, Sign.TOPICS_CHANGED): Step.ALONE,
    (Step.HERE, Sign.DISMISSED): Step.LEAVING,
    (Step.HERE, Sign.DOUBTED): Step.CHECKING,
    (Step.CHECKING, Sign.STILL_OURS): Step.ALONE,
    (Step.CHECKING, Sign.HALF_TAKEN): Step.ALONE,
    (Step.CHECKING, Sign.HALF_TAKEN_BESIDE): Step.BACKING_OUT,
    (Step.CHECKING, Sign.HALF_RETURNED): Step.OPENING,
    (Step.CHECKING, Sign.HALF_RETURNED_BESIDE): Step.RETURNING,
    (Step.CHECKING, Sign.LEFT): Step.GIVING_UP,
    (Step.CHECKING, Sign.FENCED): Step.GIVING_UP,
    (Step.CHECKING, Sign.HOPELESS_OUTSIDE): Step.UNNOTING,
    (Step.CHECKING, Sign.ONCE_MORE): Step.CHECKING,
    (Step.OPENING, Sign.JOINED_ALONE): Step.OPEN_SYNCING,
    (Step.OPENING, Sign.SEAT_LOST): Step.CHECKING,
    (Step.OPENING, Sign.ONCE_MORE): Step.OPENING,
    (Step.OPENING, Sign.FENCED): Step.GIVING_UP,
    (Step.OPEN_SYNCING, Sign.SEATED): Step.RETURNING,
    (Step.OPEN_SYNCING, Sign.ONCE_MORE): Step.OPENING,
    (Step.OPEN_SYNCING, Sign.SEAT_LOST): Step.CHECKING,
    (Step.OPEN_SYNCING, Sign.FENCED): Step.GIVING_UP,
    (Step.RETURNING, Sign.WRITTEN): Step.WAITING,
    (Step.RETURNING, Sign.HOPELESS): Step.ALONE,
    (Step.RETURNING, Sign.OVERRUN): Step.LEAVING,
    (Step.RETURNING, Sign.ONCE_MORE): Step.RETURNING,
    (Step.WAITING, Sign.ALL_GONE): Step.LEAVING,
    (Step.WAITING, Sign.FENCED): Step.GIVING_UP,
    (Step.WAITING, Sign.SEAT_LOST): Step.CHECKING,
    (Step.LEAVING, Sign.LEFT): Step.GIVING_UP,
    (Step.LEAVING, Sign.ONCE_MORE): Step.LEAVING,
    (Step.GIVING_UP, Sign.WRITTEN): Step.UPSTREAM,
    (Step.GIVING_UP, Sign.ONCE_MORE): Step.GIVING_UP,
}
"""All pairs that move a group."""
