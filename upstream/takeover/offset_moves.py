"""What becomes of a group's offsets when it is taken, and when it goes back."""

from __future__ import annotations

from typing import Protocol

from model.ids import GroupId
from upstream.offsets.offset_copies import OffsetCopies
from upstream.offsets.offsets import Offsets


class OffsetMoves(Protocol):
    """Each may raise a ``GroupError``; it is then called again, or the group stays where it is."""

    async def carry_here(self, group_id: GroupId) -> None:
        """Before the members are adopted, while the sentinel is in."""

    async def carry_back(self, group_id: GroupId) -> None:
        """Before the sentinel leaves: afterwards no commit is accepted."""

    def reopen(self, group_id: GroupId) -> None:
        """The group is here, for the first time or again."""


class StoredOffsets:
    """The offsets of a store: those that are in the cluster stay there."""

    def __init__(self, offsets: Offsets, copies: OffsetCopies) -> None:
        self._offsets = offsets
        self._copies = copies

    async def carry_here(self, group_id: GroupId) -> None:
        if not self._offsets.are_in_cluster:
            await self._copies.copy_in(group_id)

    async def carry_back(self, group_id: GroupId) -> None:
        if self._offsets.are_in_cluster:
            await self._offsets.close(group_id)
        else:
            await self._copies.copy_out(group_id)

    def reopen(self, group_id: GroupId) -> None:
        self._offsets.reopen(group_id)
