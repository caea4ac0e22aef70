"""Where a group is: in the cluster that Muster stands in front of, here, or on its way."""

from __future__ import annotations

from enum import Enum
from typing import Final

from model.value import value


class Place(Enum):
    """Who coordinates a group. Every group has one place; without a record it is ``UPSTREAM``."""

    UPSTREAM = "upstream"
    """The cluster's own coordinator."""
    TAKING = "taking"
    """Still the cluster's; its members are on their way here."""
    MUSTER = "muster"
    """Muster; in the cluster the sentinel is the group's only member."""
    RETURNING = "returning"
    """Still Muster's; its members are on their way to the cluster."""


@value
class GroupPlace:
    """The place of a group, and since when (wall ms).

    ``generation`` is the highest generation that the cluster's group is known to have had.
    """

    place: Place
    since_ms: int
    generation: int = 0


_HERE: Final = frozenset({Place.MUSTER, Place.RETURNING})


def is_here(place: GroupPlace | None) -> bool:
    """Whether Muster coordinates the group of that place."""
    return place is not None and place.place in _HERE
