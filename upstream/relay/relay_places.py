"""``RelayPlaces``: what a relay asks of those who know where groups are, and tells them."""

from __future__ import annotations

from typing import Final, Protocol

from model.places import Place

JOINED: Final = "joined"
"""A classic member joins through a relay."""
CONSUMER_PROTOCOL: Final = "consumer-protocol"
"""A member of the consumer protocol joins through a relay."""


class RelayPlaces(Protocol):
    """Where groups are. All calls return at once."""

    def find_place(self, group_id: str) -> Place:
        """The place of a group."""

    def may_take(self, group_id: str, cause: str) -> bool:
        """Whether ``asks_to_take`` would have the group taken. It asks for nothing."""

    def is_elsewhere(self, group_id: str) -> bool:
        """Whether another Muster has the group, so that the cluster would refuse its members."""

    def asks_to_take(self, group_id: str, cause: str) -> bool:
        """Whether the group is taken for this cause; then its taking has begun or been asked for.

        A member that joins gives a cause only for groups that are to be taken by their names. The
        broker has shown before that the client may read the group.
        """

    def meets_former_member(self, group_id: str, member_id: str) -> bool:
        """Whether a group that returns, or just returned, had this member here, not upstream."""

    def awaits_member(self, group_id: str, member_id: str) -> bool:
        """Whether the group is on its way, and this member of the cluster's has not come here."""

    def note_joined(self, group_id: str, member_id: str) -> None:
        """A member joins in the cluster; the id is the one that it had before, most often ""."""


def is_here(places: RelayPlaces, group_id: str) -> bool:
    """Whether members have to come to Muster's node, which knows where to send them."""
    place = places.find_place(group_id)
    return place in (Place.TAKING, Place.MUSTER) or places.is_elsewhere(group_id)
