"""What the movers of all groups share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from coordinator.runtime.api import Coordinator
from upstream.cluster.cluster import Cluster
from upstream.sentinel.sentinel_sign import SentinelSign
from upstream.sentinel.upkeep import SentinelUpkeep
from upstream.takeover.asking.on_the_way import MembersOnTheWay
from upstream.takeover.machine.move import MoveRules
from upstream.takeover.move_log import MoveLog
from upstream.takeover.offset_moves import OffsetMoves

OnStep: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Called with the name of a step and the group, before anything is done at that step."""


class SeenTimes(Protocol):
    """A member that a relay has seen."""

    @property
    def session_timeout_ms(self) -> int:
        """Its session timeout."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """Its rebalance timeout."""

    @property
    def led_generation(self) -> int:
        """The last generation that it led; -1 if none is known."""


class RelayedMembers(Protocol):
    """What a takeover needs of the relays."""

    def members_of(self, group_id: str) -> Mapping[str, SeenTimes]:
        """The members that came through a relay."""

    def end_waits(self, group_id: str) -> None:
        """Answer NOT_COORDINATOR to all JoinGroups and SyncGroups of the group that wait."""


async def _no_step(step: str, group_id: str) -> None:
    return None


@dataclass(slots=True)
class Moving:
    """``turns`` bounds how many groups are moved at once, ``joins`` how many sentinels join.

    ``coordinator`` is the runtime itself: what is asked of it is not looked at by place.
    """

    cluster: Cluster
    coordinator: Coordinator
    relays: RelayedMembers
    sign: SentinelSign
    rules: MoveRules
    on_the_way: MembersOnTheWay
    upkeep: SentinelUpkeep
    clock_ms: Callable[[], int]
    turns: asyncio.Semaphore
    joins: asyncio.Semaphore
    log: MoveLog
    on_step: OnStep = _no_step
    offsets: OffsetMoves | None = None
