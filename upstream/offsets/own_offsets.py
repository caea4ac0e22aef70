"""Committed offsets in Muster's own store, of groups that were taken from a cluster."""

from __future__ import annotations

from coordinator.runtime.api import Coordinator, Reply
from model.commands.offsets import DeleteOffsets, OffsetCommit, OffsetFetch
from model.commands.transactions import TxnOffsetCommit
from model.errors import NotCoordinator, UnsupportedVersion
from model.ids import GroupId


class OwnOffsets:
    """Offsets are copied when a group comes and when it goes. Implements ``Offsets``."""

    are_in_cluster = False

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._closed: set[GroupId] = set()

    def commit(self, command: OffsetCommit, reply: Reply) -> None:
        """Commit here."""
        if command.group_id in self._closed:
            reply(NotCoordinator(f"The group {command.group_id} is going back to the cluster."))
            return
        self._coordinator.submit(command, reply)

    def ticket(self, command: OffsetCommit) -> None:
        """None: commits end when the group goes back, and no ticket of the runtime's would."""
        return

    def commit_transaction(self, command: TxnOffsetCommit, reply: Reply) -> None:
        """Refuse: the transaction ends in the cluster, which does not know of offsets here."""
        reply(
            UnsupportedVersion(
                "Offsets cannot be committed in transactions: they are not in the cluster "
                "(upstream.offsets.store=muster)."
            )
        )

    def fetch(self, command: OffsetFetch, reply: Reply) -> None:
        """Fetch from here."""
        self._coordinator.submit(command, reply)

    def delete(self, command: DeleteOffsets, reply: Reply) -> None:
        """Delete here."""
        self._coordinator.submit(command, reply)

    async def close(self, group_id: GroupId) -> None:
        """Accept no commits of a group any more. Those before are seen by a fetch."""
        self._closed.add(group_id)

    async def stop(self) -> None:
        """The runtime answers what it has accepted."""

    def reopen(self, group_id: GroupId) -> None:
        """Accept the group's commits again."""
        self._closed.discard(group_id)
