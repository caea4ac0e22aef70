"""Rounds of churn, each of which ends where it began: at an equal point."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.server import MusterServer
from tests.soak.figures import Gauge, Point
from tests.soak.load import consumers, scrapes, sessions, wire

SETTLE_S: Final = 2.0
DEADLINES_S: Final = wire.SESSION_MS / 1_000 + 1.0
"""Deadlines of members that have gone stay until they would have been due."""
GONE_WITHIN_S: Final = 60.0
_STEADY: Final = "steady"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work: so many ``at_once``, again and again with a pause."""

    name: str
    work: Callable[[str], Awaitable[None]]
    at_once: int = 1
    pause_s: float = 0.1


def list_kinds(server: MusterServer) -> list[Kind]:
    """All that comes and goes."""
    over_wire = (
        (wire.simple_group, 4),
        (wire.consumer_group, 4),
        (wire.pattern_group, 4),
        (wire.classic_group, 4),
        (wire.member_that_never_joins, 2),
        (wire.transaction, 3),
        (wire.questions, 1),
        (wire.broken_connections, 1),
    )
    over_grpc = (
        sessions.member,
        sessions.classic_member,
        sessions.member_that_dies,
        sessions.administration,
        sessions.watches,
        sessions.offsets_after_all,
    )
    return [
        *(Kind(work.__name__, partial(work, server.kafka), times) for work, times in over_wire),
        *(Kind(f"{work.__name__}_over_gRPC", partial(work, server.grpc)) for work in over_grpc),
        Kind("topic", partial(wire.topic, server.kafka), 2, pause_s=1.0),
        Kind("scrapes", partial(scrapes.scrapes, server.http)),
        Kind("consumer", partial(consumers.consumer, server.kafka, is_classic=False), 2),
        Kind("classic_consumer", partial(consumers.consumer, server.kafka, is_classic=True)),
        Kind("killed_consumer", partial(consumers.killed_consumer, server.kafka), pause_s=8.0),
    ]


class Rounds:
    """Runs rounds, and counts what was done and what failed."""

    def __init__(self, server: MusterServer, gauge: Gauge, only: str = "") -> None:
        """``only`` is what the names of the kinds of work begin with, for all if it is empty."""
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._server = server
        self._gauge = gauge
        self._kinds = [
            kind for kind in list_kinds(server) if kind.name.startswith(tuple(only.split(",")))
        ]
        self._names = itertools.count(1)

    async def run_round(self, churn_s: float) -> Point:
        """Churn for so long, wait until all of it has gone, and measure."""
        ends_at = time.monotonic() + churn_s
        await asyncio.gather(*(self._repeat(kind, ends_at) for kind in self._kinds))
        await self._settle()
        return await self._gauge.measure()

    async def _repeat(self, kind: Kind, ends_at: float) -> None:
        while True:
            await asyncio.gather(*(self._run(kind) for _ in range(kind.at_once)))
            if time.monotonic() + kind.pause_s >= ends_at:
                return
            await asyncio.sleep(kind.pause_s)

    async def _run(self, kind: Kind) -> None:
        name = f"{kind.name[:12]}-{next(self._names)}-{time.monotonic_ns():x}"
        try:
            async with asyncio.timeout(60):
                await kind.work(name)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted and shown
            self.failed[f"{kind.name}: {type(error).__name__}: {error}"[:160]] += 1
        self.done[kind.name] += 1

    async def _settle(self) -> None:
        """Until only groups that stay are left; those that are empty are deleted. Then a while."""
        # What clients leave in cycles holds connections.
        gc.collect()
        await asyncio.sleep(DEADLINES_S)
        async with wire.connected(self._server.kafka, "settling") as connection:
            deadline = time.monotonic() + GONE_WITHIN_S
            while time.monotonic() < deadline:
                listed = await connection.ask(wire.LIST, 5)
                left = [row for row in listed.groups if not row.group_id.startswith(_STEADY)]
                if not left:
                    break
                empty = [row.group_id for row in left if row.group_state in ("Empty", "Dead")]
                await connection.ask(wire.DELETE_GROUPS, 2, groups_names=empty)
                await asyncio.sleep(0.5)
            else:
                self.failed[f"left in the end: {left[0].group_id} {left[0].group_state}"] += 1
        await asyncio.sleep(SETTLE_S)
