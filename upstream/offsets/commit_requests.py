"""Sends commits in the sentinel's name, and makes of the answer what a member may be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from coordinator.runtime.api import Coordinator
from gateway.codec.client_frames import ClientRequest
from model.commands.transactions import TxnOffsetCommit
from model.errors import CoordinatorLoadInProgress, ErrorCode
from model.ids import GroupId
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.hooks import SentinelIdentity, Takeovers
from upstream.offsets.offset_requests import (
    Row,
    Spot,
    make_commit,
    make_transactional_commit,
    read_codes,
)
from upstream.offsets.refusals import MOVING, compute_refusal, find_lost_seat

REBALANCE_RETRY_S: Final = 0.02
"""The sentinel is about to send its SyncGroup."""


class CommitRequests:
    """Asks the group's coordinator in the cluster. ``now_ms`` is a monotonic clock.

    Raises ``CoordinatorLoadInProgress`` where it is not known what has been done, or the sentinel
    is not in its seat: members are to come again, and not to look for another coordinator.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        takeovers: Takeovers,
        now_ms: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._takeovers = takeovers
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms

    async def commit(self, group_id: GroupId, rows: Sequence[Row]) -> dict[Spot, ErrorCode]:
        """Commit; the result of each partition. One at a time for a group."""

        def make(identity: SentinelIdentity) -> ClientRequest:
            return make_commit(group_id, identity, rows)

        return await self._ask(group_id, make, may_take_back=True)

    async def commit_transaction(
        self, commit: TxnOffsetCommit, rows: Sequence[Row]
    ) -> dict[Spot, ErrorCode]:
        """Commit in the client's transaction. The producer's epoch fences what comes late."""

        def make(identity: SentinelIdentity) -> ClientRequest:
            return make_transactional_commit(commit, identity, rows)

        return await self._ask(commit.group_id, make, may_take_back=False)

    async def _ask(
        self,
        group_id: GroupId,
        make: Callable[[SentinelIdentity], ClientRequest],
        *,
        may_take_back: bool,
    ) -> dict[Spot, ErrorCode]:
        end_ms = self._now_ms() + self._timeout_ms
        while True:
            identity = await self._find_sentinel(group_id, end_ms)
            left_ms = end_ms - self._now_ms()
            if left_ms <= 0:
                raise CoordinatorLoadInProgress(f"The cluster's group {group_id} is rebalancing.")
            try:
                response = await self._cluster.ask_coordinator(
                    group_id, make(identity), timeout_ms=left_ms
                )
            except ClusterUnreachable as error:
                if may_take_back:
                    self._takeovers.note_lost_answer(group_id, identity)
                raise CoordinatorLoadInProgress(f"No answer from the cluster: {error}") from None
            codes = read_codes(response)
            said = set(codes.values())
            if said & MOVING:
                raise CoordinatorLoadInProgress("The cluster's coordinator of the group moves.")
            if not self._is_to_repeat(group_id, identity, said):
                return codes
            await asyncio.sleep(REBALANCE_RETRY_S)

    async def _find_sentinel(self, group_id: GroupId, end_ms: int) -> SentinelIdentity:
        known = self._takeovers.sentinel_of(group_id)
        if known is not None:
            return known
        try:
            async with asyncio.timeout(max(end_ms - self._now_ms(), 0) / 1_000):
                return await self._takeovers.await_sentinel(group_id)
        except TimeoutError:
            raise CoordinatorLoadInProgress(
                f"Muster has no place in the cluster's group {group_id} yet."
            ) from None

    def _is_to_repeat(
        self, group_id: GroupId, identity: SentinelIdentity, said: set[ErrorCode]
    ) -> bool:
        """Whether the same is to be asked again. Raises the error of a lost seat."""
        lost = find_lost_seat(said)
        if lost is None:
            return ErrorCode.REBALANCE_IN_PROGRESS in said
        if self._takeovers.sentinel_of(group_id) != identity:
            return True  # It has joined again while the request was on its way.
        self._takeovers.note_refused(group_id, lost)
        raise compute_refusal(group_id, self._coordinator.place_of(group_id))
