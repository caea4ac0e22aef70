"""Members of classic groups that come, go and die over connections that break: no partition ever
has two owners."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack

import pytest

import muster
from muster.membership import Partitions
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import ALL, classic_stand, make_classic
from tests.unit.sdk.connection.proxy import Proxy, running_proxy
from tests.unit.sdk.watcher import Ledger

STEPS = 15
SEEDS = range(4, 4 + int(os.environ.get("CLASSIC_CHAOS_SEEDS", "1")))
"""Seed 4 finds two owners where leases last longer than sessions."""


class Chaos:
    """Decides, from one seed, what happens next."""

    def __init__(self, stand: Stand, proxies: list[Proxy], assignor: str, seed: int) -> None:
        self._random = random.Random(seed)
        self._stand = stand
        self._proxies = proxies
        self._assignor = assignor
        self._count = 0
        self.ledger = Ledger()
        self.members: dict[str, muster.ClassicMember] = {}
        self.dead: list[muster.ClassicMember] = []

    async def step(self) -> None:
        actions = (self.join, self.join, self.leave, self.die, self.cut, self.freeze, self.commit)
        await self._random.choice((*actions, self.commit, self.restart))()
        await asyncio.sleep(self._random.uniform(0, 0.05))

    async def join(self) -> None:
        if len(self.members) >= 4:
            return
        self._count += 1
        name = f"m{self._count}"
        delay = self._random.choice((0.0, 0.0, 0.02))

        async def hold(event: str, partitions: Partitions) -> None:
            await asyncio.sleep(delay)

        member = make_classic(
            self._random.choice(self._proxies).target,
            self.ledger,
            name,
            hold,
            assignors=[self._assignor],
            session_timeout_ms=600,
            rebalance_timeout_ms=1_500,
        )
        await member.join()
        self.members[name] = member

    async def leave(self) -> None:
        if len(self.members) > 1:
            await self.members.pop(self._random.choice(sorted(self.members))).close()

    async def die(self) -> None:
        """The process is gone: nobody hears of it, and nothing of it works on."""
        if len(self.members) > 1:
            name = self._random.choice(sorted(self.members))
            member = self.members.pop(name)
            assert member._engine is not None
            member._engine.detach()
            self.dead.append(member)
            for partition in [key for key, who in self.ledger.owner_of.items() if who == name]:
                del self.ledger.owner_of[partition]

    async def cut(self) -> None:
        self._random.choice(self._proxies).cut()

    async def freeze(self) -> None:
        """Sometimes for less than the session timeout, sometimes for more."""
        proxy = self._random.choice(self._proxies)
        proxy.freeze()
        await asyncio.sleep(self._random.choice((0.05, 0.2, 0.8)))
        proxy.thaw()

    async def restart(self) -> None:
        await self._stand.stop_server()
        await self._stand.restart()

    async def commit(self) -> None:
        for member in self.members.values():
            offsets = dict.fromkeys(member.assignment, 1)
            await asyncio.gather(member.commit(offsets), return_exceptions=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_no_partition_has_two_owners_whatever_breaks(assignor: str, seed: int) -> None:
    async with AsyncExitStack() as stack:
        stand = await stack.enter_async_context(classic_stand())
        proxies = [await stack.enter_async_context(running_proxy(stand.port)) for _ in range(2)]
        chaos = Chaos(stand, proxies, assignor, seed)
        await chaos.join()
        for _ in range(STEPS):
            await chaos.step()
            assert chaos.ledger.overlaps == []

        def all_owned_once() -> bool:
            owned = [key for member in chaos.members.values() for key in member.assignment]
            return sorted(owned) == sorted(ALL)

        await until(all_owned_once)
        assert chaos.ledger.overlaps == []
        await asyncio.gather(*(member.close() for member in chaos.members.values()))
        assert chaos.ledger.owner_of == {}
        for member in chaos.dead:
            await member.close()
