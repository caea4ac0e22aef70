"""Members of classic groups for tests, on servers where groups form at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import muster
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until
from tests.unit.sdk.watcher import Hold, Ledger, Watcher

ALL = frozenset(muster.TopicPartition("orders", index) for index in range(4))


@asynccontextmanager
async def classic_stand() -> AsyncIterator[Stand]:
    """Sessions may be short, and a new group waits for nobody."""
    async with running_stand(
        min_classic_session_timeout_ms=100, initial_rebalance_delay_ms=0
    ) as running:
        yield running


def make_classic(
    stand: Stand | str | muster.Client,
    ledger: Ledger | None = None,
    name: str = "m",
    hold: Hold | None = None,
    **options: Any,
) -> muster.ClassicMember:
    """A member of the group ``billing`` that writes into the ledger."""
    watcher = Watcher(ledger or Ledger(), name, hold)
    defaults: dict[str, Any] = {
        "topics": ["orders"],
        "assignors": ["range"],
        "on_assigned": watcher.on_assigned,
        "on_revoked": watcher.on_revoked,
        "on_lost": watcher.on_lost,
        "client_id": name,
        "heartbeat_interval_ms": 30,
        "session_timeout_ms": 10_000,
    }
    target = stand.target if isinstance(stand, Stand) else stand
    return muster.ClassicMember(target, "billing", **(defaults | options))


async def until_shared(*members: muster.ClassicMember, of: frozenset[Any] = ALL) -> None:
    """Until all is owned, by each of the members as much as by the others."""

    def is_shared() -> bool:
        sizes = [len(member.assignment) for member in members]
        owned = frozenset().union(*(member.assignment for member in members))
        return owned == of and sum(sizes) == len(of) and max(sizes) - min(sizes) <= 1

    await until(is_shared)
