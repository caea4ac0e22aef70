"""Deletes groups that are here: in the cluster, where the sentinel has to leave first, and here."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from coordinator.runtime.api import Coordinator, Reply
from model.commands.groups import DeleteGroup
from model.commands.places import GiveGroupUp
from model.errors import (
    ClusterRefused,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    GroupIdNotFound,
)
from model.ids import GroupId
from model.responses.response import Done, Response
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.hooks import Takeovers
from upstream.offsets.offset_requests import make_group_deletion, read_group_deletion
from upstream.offsets.offsets import Offsets
from upstream.offsets.tasks import AnsweringTasks

log = structlog.get_logger()

DELETIONS_MAX = 100


class GroupDeletions:
    """Deletes groups. Nobody may join a group in ``running`` meanwhile.

    A group that the cluster does not delete in the end is the cluster's, or the sentinel takes its
    seat again.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        takeovers: Takeovers,
        offsets: Offsets,
        *,
        timeout_ms: int = 30_000,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._takeovers = takeovers
        self._offsets = offsets
        self._timeout_ms = timeout_ms
        self._running: set[GroupId] = set()
        self._tasks = AnsweringTasks(DELETIONS_MAX)

    @property
    def running(self) -> Collection[GroupId]:
        """The groups that are being deleted."""
        return self._running

    async def stop(self) -> None:
        """End the deletions; the groups stay."""
        await self._tasks.stop()

    def submit(self, command: DeleteGroup, reply: Reply) -> None:
        """Delete a group whose place is here."""
        if command.group_id in self._running or self._tasks.is_full:
            reply(CoordinatorLoadInProgress("Groups are being deleted."))
            return
        self._tasks.answer(self._delete(command), reply)

    async def _delete(self, command: DeleteGroup) -> Response:
        group_id = command.group_id
        await self._check_empty(command)
        if command.validate_only:
            return Done()
        self._running.add(group_id)
        try:
            await self._offsets.close(group_id)
            if not await self._takeovers.leave(group_id):
                raise CoordinatorLoadInProgress(
                    f"Muster cannot leave the cluster's {group_id} now."
                )
            try:
                await self._delete_in_cluster(command)
            except BaseException:
                self._takeovers.note_refused(group_id, ErrorCode.UNKNOWN_MEMBER_ID)
                raise
            return await self._coordinator.call(GiveGroupUp(command.caller, group_id))
        finally:
            self._offsets.reopen(group_id)
            self._running.discard(group_id)

    async def _check_empty(self, command: DeleteGroup) -> None:
        """Raise ``NonEmptyGroup`` for a group with members here."""
        check = DeleteGroup(command.caller, command.group_id, validate_only=True)
        try:
            await self._coordinator.call(check)
        except GroupIdNotFound:
            return  # It has nothing here but its place.

    async def _delete_in_cluster(self, command: DeleteGroup) -> None:
        group_id = command.group_id
        await self._check_empty(command)
        try:
            response = await self._cluster.ask_coordinator(
                group_id, make_group_deletion(group_id), timeout_ms=self._timeout_ms
            )
        except ClusterUnreachable as error:
            raise CoordinatorNotAvailable(f"No answer from the cluster: {error}") from None
        code = read_group_deletion(group_id, response)
        if code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            raise ClusterRefused(
                f"The cluster does not delete group {group_id}: {code.name}.", code
            )
