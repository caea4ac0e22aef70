"""Heartbeats of the sentinels, spread so that thousands of groups cost little."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog

from model.errors import ErrorCode
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.sentinel.sentinel_requests import make_heartbeat
from upstream.sentinel.sentinel_seat import Seat

log = structlog.get_logger("muster.upstream")

INTERVAL_S: Final = 5.0
"""How soon an eviction is noticed, while no commit tells of it before."""
RATE_MAX: Final = 200.0
"""Most heartbeats a second: with more groups than a thousand each gets fewer."""
IN_FLIGHT_MAX: Final = 64
_ASK_TIMEOUT_MS: Final = 10_000
_TICK_S: Final = 0.05


class SentinelUpkeep:
    """Sends a heartbeat for each seat in turn, and says when the cluster refuses one."""

    def __init__(self, cluster: Cluster, on_lost: Callable[[str, ErrorCode], None]) -> None:
        self._cluster = cluster
        self._on_lost = on_lost
        self._seats: OrderedDict[str, Seat] = OrderedDict()
        self._running: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End; nothing is sent any more, and no sentinel leaves."""
        tasks = [*self._running, *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def keep(self, group_id: str, seat: Seat) -> None:
        """Send heartbeats for this seat from now on."""
        self._seats[group_id] = seat

    def drop(self, group_id: str) -> None:
        """Send none any more."""
        self._seats.pop(group_id, None)

    async def _run(self) -> None:
        owed = 0.0
        while True:
            await asyncio.sleep(_TICK_S)
            count = len(self._seats)
            owed = min(owed + _TICK_S * min(count / INTERVAL_S, RATE_MAX), float(count))
            while owed >= 1.0 and len(self._running) < IN_FLIGHT_MAX:
                owed -= 1.0
                self._begin(*next(iter(self._seats.items())))

    def _begin(self, group_id: str, seat: Seat) -> None:
        self._seats.move_to_end(group_id)
        task = asyncio.get_running_loop().create_task(self._beat(group_id, seat))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _beat(self, group_id: str, seat: Seat) -> None:
        try:
            response = await self._cluster.ask_coordinator(
                group_id,
                make_heartbeat(group_id, seat.member_id, seat.generation),
                timeout_ms=_ASK_TIMEOUT_MS,
            )
        except ClusterUnreachable as cause:
            log.debug("sentinel_heartbeat_unanswered", group=group_id, cause=str(cause))
            return
        if self._seats.get(group_id) != seat:
            return
        for code in _LOSSES:
            if int(response.error_code) == code:
                self._on_lost(group_id, code)


_LOSSES: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
)
