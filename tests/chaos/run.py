"""One run: real members of both protocols over bad networks to a real server, from one seed.

Workers fetch the committed offset, process, and commit one more. In each group one of them has a
network that only delays, so that somebody lives at every moment who could read every partition.
What is judged is what the workers did (``ledger``); the server is asked nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

import muster
from model.caller import INTERNAL
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.ids import GroupId
from muster import TopicPartition
from muster.membership import Partitions
from tests.chaos.ledger import Ledger
from tests.chaos.network import DelayRange, Network, running_network
from tests.support.service.stand import Stand, running_stand

AnyMember: TypeAlias = muster.Member | muster.ClassicMember

SESSION_MS: Final = 2_000
LONG_SESSION_MS: Final = 4_000
SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
BOUND_S: Final = 12.0
"""On top of the longest session timeout: owners that are cut off one after another, rebalance
timeouts, back-offs of connections."""
PARTITIONS: Final = frozenset(TopicPartition("orders", index) for index in range(4))
FAULTY: Final = 3
CALL_TIMEOUT_MS: Final = 3_000
LOOK_S: Final = 0.003


class Clock:
    """The loop's, without the time that the loop stood still: the machine is shared."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._looked_at = self._loop.time()
        self.stalled_s = 0.0

    def read(self) -> float:
        return self._loop.time() - self._began - self.stalled_s

    def look(self) -> None:
        """Called every ``LOOK_S``: what it comes late by was a stall."""
        now = self._loop.time()
        late_s = now - self._looked_at - LOOK_S
        self._looked_at = now
        if late_s > 0.05:
            self.stalled_s += late_s


@dataclass
class Worker:
    """An application with one member. ``name`` is another one for each member."""

    name: str
    member: AnyMember
    network: Network
    is_clean: bool


class Group:
    """The workers of one group."""

    def __init__(self, name: str, is_classic: bool, chaos: Chaos) -> None:
        self.name = name
        self.ledger = Ledger(name, LONG_SESSION_MS / 1000 + BOUND_S)
        self.workers: list[Worker] = []
        self._is_classic = is_classic
        self._chaos = chaos
        self._assignor = chaos.chance.choice(("range", "cooperative-sticky"))
        self._count = 0

    async def add(self, network: Network, *, is_clean: bool) -> None:
        """A new worker joins; a join that fails is tried again later."""
        self._count += 1
        name = f"{self.name}-{self._count}{'' if is_clean else '!'}"
        worker = Worker(name, self._make(network.target, name), network, is_clean)
        # From before the join on: it may believe to own something when that returns.
        self.ledger.enter(name, lambda: worker.member.assignment)
        self.workers.append(worker)
        while True:
            try:
                await worker.member.join()
                return
            except muster.MusterError:
                self._chaos.tally["joins that failed"] += 1
                worker.member = self._make(network.target, name)

    def _make(self, target: str, name: str) -> AnyMember:
        chance = self._chaos.chance
        rebalance_timeout_ms = chance.choice((600, 1_500, 20_000))

        async def on_revoked(partitions: Partitions) -> None:
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.05, 1.0)))

        if self._is_classic:
            return muster.ClassicMember(
                target,
                self.name,
                topics=["orders"],
                assignors=[self._assignor],
                on_revoked=on_revoked,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=rebalance_timeout_ms,
                heartbeat_interval_ms=150,
                client_id=name,
            )
        return muster.Member(
            target,
            self.name,
            topics=["orders"],
            on_revoked=on_revoked,
            rebalance_timeout_ms=rebalance_timeout_ms,
            max_poll_interval_ms=None,
            client_id=name,
        )

    async def work(self, worker: Worker) -> None:
        """Until it is cancelled."""
        while True:
            for partition in sorted(worker.member.assignment):
                try:
                    await self._step(worker, partition)
                except (muster.MusterError, TimeoutError) as error:
                    self._chaos.tally[type(error).__name__] += 1
                except asyncio.CancelledError:
                    task = asyncio.current_task()
                    if task is None or task.cancelling():
                        raise
                    self._chaos.tally["calls of a closed connection"] += 1
            await asyncio.sleep(0.02)

    async def _step(self, worker: Worker, partition: TopicPartition) -> None:
        """Fetch, process, commit one more."""
        member, ledger, clock = worker.member, self.ledger, self._chaos.clock
        floor = ledger.floor(partition)
        fetched = await member.fetch_offsets([partition], timeout_ms=CALL_TIMEOUT_MS)
        said = fetched[partition]
        offset = 0 if said is None else said.offset
        ledger.note_fetched(worker.name, partition, offset, floor, clock.read())
        ledger.look(clock.read())
        if partition in member.assignment:
            # Two at once, sometimes: a worker need not wait before it reads on.
            count = self._chaos.chance.choice((1, 1, 2))
            commits = (self._commit(member, partition, offset + each + 1) for each in range(count))
            # Of one that failed the other must not be under way when the worker begins anew.
            for result in await asyncio.gather(*commits, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    async def _commit(self, member: AnyMember, partition: TopicPartition, offset: int) -> None:
        await member.commit({partition: offset}, timeout_ms=CALL_TIMEOUT_MS)
        self.ledger.note_acknowledged(partition, offset)


class Chaos:
    """What happens in one run, and the account of it."""

    def __init__(self, stand: Stand, seed: int, tally: Counter[str]) -> None:
        self.chance = random.Random(seed)
        self.tally = tally
        self.clock = Clock()
        self._stand = stand
        self._networks: list[Network] = []
        self._works: dict[str, asyncio.Task[None]] = {}
        self.groups = [Group("new", is_classic=False, chaos=self)]
        self.groups.append(Group("classic", is_classic=True, chaos=self))

    async def run(self, seconds: float) -> list[str]:
        """What must not have happened, and did."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            await self._begin(stack)
            looking = asyncio.create_task(self._look())
            trouble = asyncio.create_task(self._trouble())
            stack.push_async_callback(_cancel, looking, trouble)
            await asyncio.wait(
                (looking, trouble), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            for task in (looking, trouble):
                if task.done():
                    task.result()
            await _cancel(trouble)
            for network in self._networks:
                network.heal()
            # With nothing in the way any more everything is read again.
            for group in self.groups:
                group.ledger.end(self.clock.read())
            await asyncio.sleep(LONG_SESSION_MS / 1000)
        return [line for group in self.groups for line in group.ledger.violations]

    async def _begin(self, stack: AsyncExitStack) -> None:
        for group in self.groups:
            joins = []
            for number in range(FAULTY + 1):
                is_clean = number == 0
                delay = DelayRange(self.chance, 0.0, 0.003 if is_clean else 0.03)
                running = running_network(self._stand.port, self.chance, delay, self.tally)
                network = await stack.enter_async_context(running)
                if not is_clean:
                    self._networks.append(network)
                joins.append(self._add(group, network, is_clean=is_clean))
            await asyncio.gather(*joins)
            group.ledger.begin(PARTITIONS, self.clock.read())

    async def _add(self, group: Group, network: Network, *, is_clean: bool) -> None:
        await group.add(network, is_clean=is_clean)
        worker = next(each for each in group.workers if each.network is network)
        self._works[worker.name] = asyncio.create_task(group.work(worker))

    async def _look(self) -> None:
        while True:
            self.clock.look()
            for group in self.groups:
                group.ledger.look(self.clock.read())
            await asyncio.sleep(LOOK_S)

    async def _trouble(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                await asyncio.sleep(self.chance.uniform(0.05, 0.5))
                kind = self.chance.random()
                if kind < 0.9:
                    tasks.create_task(self.chance.choice(self._networks).strike())
                elif kind < 0.94:
                    tasks.create_task(self._replace(self.chance.choice(self.groups)))
                elif kind < 0.98:
                    await self._set_session_timeout()
                else:
                    await self._restart()

    async def _replace(self, group: Group) -> None:
        """A worker closes its member, or dies; another one begins in its place."""
        faulty = [each for each in group.workers if not each.is_clean and each.name in self._works]
        if len(faulty) < FAULTY:
            return
        worker = self.chance.choice(faulty)
        group.workers.remove(worker)
        await _cancel(self._works.pop(worker.name))
        if self.chance.random() < 0.5:
            self.tally["workers closed"] += 1
            await _close(worker)
        else:
            self.tally["workers died"] += 1
            assert worker.member._engine is not None
            group.ledger.leave(worker.name)
            worker.member._engine.detach()
            await _close(worker)
        group.ledger.leave(worker.name)
        await self._add(group, worker.network, is_clean=False)

    async def _set_session_timeout(self) -> None:
        timeout_ms = self.chance.choice((SESSION_MS, LONG_SESSION_MS))
        self.tally["session timeouts set"] += 1
        change = ConfigChange(SESSION_TIMEOUT, ConfigOperation.SET, str(timeout_ms))
        command = AlterGroupConfigs(INTERNAL, GroupId(self.groups[0].name), (change,))
        await self._stand.runtime.call(command)

    async def _restart(self) -> None:
        self.tally["restarts"] += 1
        await self._stand.stop_server()
        await self._stand.restart()
        await self._stand.runtime.loaded()

    async def _close(self) -> None:
        await _cancel(*self._works.values())
        workers = [worker for group in self.groups for worker in group.workers]
        await asyncio.gather(*(_close(worker) for worker in workers))


async def _close(worker: Worker) -> None:
    with suppress(muster.MusterError):
        await worker.member.close()


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def run_seed(seed: int, seconds: float, tally: Counter[str]) -> list[str]:
    """The violations of one run; what happened in it is added to the tally."""
    async with running_stand(
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=150,
        min_session_timeout_ms=SESSION_MS,
        min_classic_session_timeout_ms=1_000,
        initial_rebalance_delay_ms=0,
    ) as stand:
        chaos = Chaos(stand, seed, tally)
        violations = await chaos.run(seconds)
    for group in chaos.groups:
        tally[f"commits acknowledged in {group.name}"] += group.ledger.commits
        longest = f"longest time unread in {group.name}, ms"
        tally[longest] = max(tally[longest], round(group.ledger.longest_gap_s * 1000))
    tally["ms stood still"] += round(chaos.clock.stalled_s * 1000)
    return violations
