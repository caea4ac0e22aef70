"""What the cluster says to requests in the sentinel's name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from model.errors import CoordinatorLoadInProgress, ErrorCode, GroupError, NotCoordinator
from model.ids import GroupId
from model.places import GroupPlace, Place

LOST_SEAT: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.ILLEGAL_GENERATION,
)
"""The sentinel is not the group's member any more, or its generation has ended."""

MOVING: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""The cluster's coordinator moves."""


def find_lost_seat(codes: Collection[ErrorCode]) -> ErrorCode | None:
    """The code that says so, if there is one."""
    return next((code for code in LOST_SEAT if code in codes), None)


def compute_refusal(group_id: GroupId, place: GroupPlace | None) -> GroupError:
    """What a member is told when the sentinel's seat is lost: to come again soon.

    Where a group is going back, its members find their coordinator in the cluster.
    """
    if place is None or place.place is Place.RETURNING:
        return NotCoordinator(f"The group {group_id} is going back to the cluster.")
    return CoordinatorLoadInProgress(f"Muster has lost its place in the cluster's {group_id}.")
