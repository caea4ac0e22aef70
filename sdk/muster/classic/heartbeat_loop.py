"""The heartbeat loop of one classic member, which also watches its lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from muster.classic.classic_calls import ClassicCalls
from muster.classic.classic_membership import ClassicMembership, Lost, Phase
from muster.classic.classic_options import ClassicOptions
from muster.classic.classic_protocol import NO_GENERATION
from muster.connection.lease import read_clock
from muster.errors import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from muster.v1 import classic_pb2, types_pb2


class ClassicHeartbeats:
    """Calls ``lose`` once the member is lost, and ``rejoin`` when its group rebalances."""

    def __init__(
        self,
        group_id: str,
        options: ClassicOptions,
        membership: ClassicMembership,
        calls: ClassicCalls,
        *,
        lose: Callable[[Lost], None],
        rejoin: Callable[[str], None],
    ) -> None:
        self.task: asyncio.Task[None] | None = None
        self._group_id = group_id
        self._options = options
        self._membership = membership
        self._calls = calls
        self._lose = lose
        self._rejoin = rejoin

    def start(self) -> None:
        """Run until the task is cancelled."""
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Keep the session alive in every phase, and notice when the lease has ended."""
        membership = self._membership
        interval_s = membership.lease.compute_interval_s(self._options.heartbeat_interval_ms)
        while True:
            delay_s = interval_s
            if membership.has_lease:
                delay_s = min(delay_s, max(0.0, membership.compute_lease_deadline() - read_clock()))
            await asyncio.sleep(delay_s)
            if membership.generation == NO_GENERATION or membership.lost is not None:
                await asyncio.sleep(interval_s if delay_s == 0 else 0)
                continue
            if membership.has_lease and not membership.holds:
                self._lose(Lost("the session has ended", forgets_id=False))
                await self._calls.replace_if_unanswered()
                continue
            await self._beat_once(max(interval_s, 1.0))

    async def _beat_once(self, timeout_s: float) -> None:
        membership = self._membership
        generation, sent_at = membership.generation, read_clock()
        if membership.has_lease:
            timeout_s = min(timeout_s, max(0.01, membership.compute_lease_deadline() - sent_at))
        request = classic_pb2.ClassicHeartbeatRequest(
            group_id=self._group_id,
            member_id=membership.member_id,
            instance_id=self._options.instance_id,
            generation=generation,
            client_id=self._options.client_id,
        )
        answer = await self._calls.beat(request, timeout_s)
        if answer is not None and generation == membership.generation:
            self._on_answer(answer.error, answer.is_held, sent_at)

    def _on_answer(self, error: types_pb2.Error, is_held: bool, sent_at: float) -> None:
        code, membership = error.error_code, self._membership
        if code in (0, REBALANCE_IN_PROGRESS):
            membership.lease.note_renewed(sent_at)
            if is_held or (code == 0 and membership.phase is Phase.MEMBER):
                membership.lease.note_undisturbed(sent_at)
        if membership.phase is Phase.JOINING:
            # The answer to the JoinGroup, which is in flight, says more.
            return
        if code == REBALANCE_IN_PROGRESS:
            self._rejoin("the group is rebalancing")
        elif code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID):
            # A fenced member joins once more, and gets the fatal error as the answer.
            self._lose(Lost(error.reason, forgets_id=code == UNKNOWN_MEMBER_ID))
