"""``Offsets``: where the committed offsets of groups that are here are kept."""

from __future__ import annotations

from typing import Protocol

from coordinator.runtime.api import CommitTicket, Reply
from model.commands.offsets import DeleteOffsets, OffsetCommit, OffsetFetch
from model.commands.transactions import TxnOffsetCommit
from model.ids import GroupId


class Offsets(Protocol):
    """The offsets of groups that are here. ``reply`` is called exactly once."""

    @property
    def are_in_cluster(self) -> bool:
        """Whether they are in the cluster, and not in Muster's own store."""

    def commit(self, command: OffsetCommit, reply: Reply) -> None:
        """Commit; answered when it cannot be lost any more."""

    def ticket(self, command: OffsetCommit) -> CommitTicket | None:
        """A ticket for commits like this one (``Coordinator.commit_ticket``)."""

    def commit_transaction(self, command: TxnOffsetCommit, reply: Reply) -> None:
        """Commit in a transaction."""

    def fetch(self, command: OffsetFetch, reply: Reply) -> None:
        """Fetch; shows all commits of the group that were accepted before."""

    def delete(self, command: DeleteOffsets, reply: Reply) -> None:
        """Delete offsets of topics that no member subscribes to."""

    async def close(self, group_id: GroupId) -> None:
        """Accept no commits of a group any more; those that were accepted are answered.

        Before its sentinel leaves. What comes then is answered with NOT_COORDINATOR.
        """

    async def stop(self) -> None:
        """Accept nothing more; all that was accepted is answered."""

    def reopen(self, group_id: GroupId) -> None:
        """Accept the group's commits again: it stays, or it has come anew."""
