"""Members that come and go over connections that break: no partition ever has two owners (S2)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

import muster
from muster.membership import Partitions
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until
from tests.unit.sdk.connection.proxy import Proxy, running_proxy
from tests.unit.sdk.test_member import ALL, make_member
from tests.unit.sdk.watcher import Ledger

STEPS = 15


class Wild(muster.Assignor):
    """An assignor that may be slow, wrong, or at a loss."""

    name = "wild"

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def assign(self, group: muster.Group) -> Mapping[str, muster.MemberAssignment]:
        mood = self._chance.choice(("well", "well", "well", "slow", "greedy", "lost"))
        if mood == "lost":
            raise RuntimeError("no idea")
        if mood == "slow":
            time.sleep(0.1)
        order = sorted(group.members, key=lambda _: self._chance.random())
        given = {
            name: frozenset(place for place in ALL if place.partition % len(order) == number)
            for number, name in enumerate(order)
        }
        if mood == "greedy":
            given[order[0]] = ALL
        return {name: muster.MemberAssignment(places) for name, places in given.items()}


class Chaos:
    """Decides, from one seed, what happens next. ``are_wild``: its members compute themselves."""

    def __init__(
        self, stand: Stand, proxies: list[Proxy], seed: int, *, are_wild: bool = False
    ) -> None:
        self._random = random.Random(seed)
        self._are_wild = are_wild
        self._stand = stand
        self._proxies = proxies
        self._count = 0
        self.ledger = Ledger()
        self.members: list[muster.Member] = []

    async def step(self) -> None:
        action = self._random.choice(
            (self.join, self.join, self.leave, self.cut, self.freeze, self.commit, self.commit)
        )
        await action()
        await asyncio.sleep(self._random.uniform(0, 0.05))

    async def join(self) -> None:
        if len(self.members) >= 4:
            return
        self._count += 1
        delay = self._random.choice((0.0, 0.0, 0.03, 0.15))

        async def hold(event: str, partitions: Partitions) -> None:
            await asyncio.sleep(delay)

        target = self._random.choice(self._proxies).target
        own = [Wild(random.Random(self._count))] if self._are_wild else []
        member = make_member(target, self.ledger, f"m{self._count}", hold, assignors=own)
        await member.join()
        self.members.append(member)

    async def leave(self) -> None:
        if len(self.members) > 1:
            await self.members.pop(self._random.randrange(len(self.members))).close()

    async def cut(self) -> None:
        self._random.choice(self._proxies).cut()

    async def freeze(self) -> None:
        """Sometimes for less than the session timeout, sometimes for more."""
        proxy = self._random.choice(self._proxies)
        proxy.freeze()
        await asyncio.sleep(self._random.choice((0.05, 0.2, 0.7)))
        proxy.thaw()

    async def commit(self) -> None:
        for member in self.members:
            if member.assignment:
                await asyncio.gather(
                    member.commit(dict.fromkeys(member.assignment, 1)), return_exceptions=True
                )


@pytest.mark.parametrize(("seed", "are_wild"), [(1, False), (2, False), (3, True), (4, True)])
async def test_no_partition_has_two_owners_whatever_breaks(seed: int, are_wild: bool) -> None:
    async with AsyncExitStack() as stack:
        stand = await stack.enter_async_context(
            running_stand(session_timeout_ms=500, heartbeat_interval_ms=50)
        )
        proxies = [await stack.enter_async_context(running_proxy(stand.port)) for _ in range(2)]
        chaos = Chaos(stand, proxies, seed, are_wild=are_wild)
        await chaos.join()
        for _ in range(STEPS):
            await chaos.step()
            assert chaos.ledger.overlaps == []

        def all_owned_once() -> bool:
            owned = [partition for member in chaos.members for partition in member.assignment]
            return sorted(owned) == sorted(ALL)

        await until(all_owned_once)
        assert chaos.ledger.overlaps == []
        await asyncio.gather(*(member.close() for member in chaos.members))
        assert chaos.ledger.owner_of == {}
