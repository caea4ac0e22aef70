"""The script of the demo in front of a cluster, and what it records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from cli.demo.events import Event, Kind
from cli.demo.kafka.classic_broker import HOST, ClassicBroker, find_free_ports
from cli.demo.ledger import Ledger, compute_longest_gap_s
from cli.demo.processes import Worker
from cli.demo.producer import TrickleProducer
from cli.demo.scene import SceneFailed
from cli.demo.server_process import ServerProcess
from cli.demo.summary import Change, Check, check_converged
from cli.demo.upstream import mover
from cli.demo.upstream.fronted_checks import (
    Kill,
    Stay,
    check_clients,
    check_duplicates,
    check_kill,
    check_members_there,
    check_owners,
    check_reads,
    check_stays,
)
from cli.demo.upstream.reads import Reads
from cli.demo.view import Screen, print_summary

TOPIC: Final = "orders"
PARTITIONS: Final = 12
GROUP: Final = "billing"
NAMES: Final = ("consumer-1", "consumer-2", "consumer-3")
SETTLE_TIMEOUT_S: Final = 60.0
HOLD_S: Final = 3.0
_QUIET_S: Final = 0.5
"""A group has settled when no partition has moved for so long."""
_POLL_S: Final = 0.05
_WORKER: Final = "cli.demo.upstream.stock_worker"


class FrontedScene:
    """One run of the demo. Raises ``MissingPrerequisite`` when it is made."""

    def __init__(self, folder: Path) -> None:
        self.screen = Screen(list, time.monotonic())
        self.screen.say("looking for Kafka's jars; Maven copies them once")
        self.broker = ClassicBroker(folder)
        kafka_port, relay_port = find_free_ports(2)
        self.server = ServerProcess(
            folder,
            (
                f"--upstream.bootstrap.servers={self.broker.bootstrap}",
                f"--upstream.relay.ports={relay_port}-{relay_port}",
                "--log.level=warning",
            ),
        )
        # The relays name this address to clients: it cannot be chosen by the system.
        self.server.addresses["kafka"] = f"{HOST}:{kafka_port}"
        self._folder = folder
        self._workers: dict[str, Worker] = {}
        self._ledger = Ledger()
        self._reads = Reads()
        self._changes: list[Change] = []
        self._stays: list[Stay] = []
        self._failures: list[str] = []
        self._kill: Kill | None = None
        self._members_there: Sequence[str] = ()
        self._producer: TrickleProducer | None = None

    # ----------------------------------------------------------------------------- the script

    async def play(self) -> None:
        """Run the script from Kafka's start to the group's return. Raises ``SceneFailed``."""
        await self._begin()
        await self._put_muster_in_front()
        await self._move("moved to Muster while it works", mover.take, "muster")
        await self._roll("went over to the consumer protocol", "consumer")
        await self._kill_server()
        await self._roll("went back to the classic protocol", "classic")
        await self._move("moved back to the cluster while it works", mover.release, "upstream")
        await asyncio.sleep(HOLD_S)
        self._members_there = sorted(await mover.list_members_there(self.broker.bootstrap, GROUP))

    async def _begin(self) -> None:
        self.screen.say(f"starting Kafka {self.broker.version} with classic groups only")
        await self.broker.start()
        await self.broker.create_topic(TOPIC, PARTITIONS)
        self._producer = TrickleProducer(self.broker.bootstrap, TOPIC, PARTITIONS)
        self._producer.start()
        self.screen.say(f"Kafka is at {self.broker.bootstrap}; topic {TOPIC} has {PARTITIONS}")
        self.screen.start()
        began_s = time.monotonic()
        for name in NAMES:
            await self._start_worker(name, self.broker.bootstrap, "classic")
        await self._settle(f"{len(NAMES)} stock consumers joined {GROUP} on Kafka", began_s, NAMES)

    async def _put_muster_in_front(self) -> None:
        """Start Muster, and restart each consumer with another ``bootstrap.servers``."""
        await self.server.start()
        addresses = self.server.addresses
        self.screen.say(
            f"Muster is in front: Kafka {addresses['kafka']}, gRPC {addresses['grpc']}, "
            f"HTTP {addresses['http']}"
        )
        await self._roll("were restarted with Muster's address", "classic")
        await self._note_place("behind Muster", "upstream")

    async def _move(
        self, title: str, move: Callable[[str, str], Awaitable[mover.Move]], wanted: str
    ) -> None:
        """Move the group, and wait until all consumers work on.

        To consumers a group that is taken over has another coordinator: nothing is assigned anew.
        One that goes back is joined anew in the cluster.
        """
        self.screen.say(f"{GROUP}: being {title}")
        began_s = time.monotonic()
        done = await move(self.server.addresses["grpc"], GROUP)
        if done.error:
            self._failures.append(done.error)
            raise SceneFailed
        moved_s = time.monotonic()
        told = NAMES if wanted == "upstream" else ()
        await self._settle(f"{GROUP} {title}", began_s, told, lambda: self._have_committed(moved_s))
        await self._note_place(title, wanted)
        await asyncio.sleep(HOLD_S)

    async def _roll(self, title: str, protocol: str) -> None:
        """Restart each consumer with a protocol, one after the other."""
        began_s = time.monotonic()
        for name in NAMES:
            restarted_s = time.monotonic()
            await self._stop_worker(name)
            await self._start_worker(name, self.server.addresses["kafka"], protocol)
            await self._wait(partial(self._is_settled, restarted_s, (name,)))
        await self._settle(f"{len(NAMES)} consumers {title}", began_s, NAMES)
        await asyncio.sleep(HOLD_S)

    async def _kill_server(self) -> None:
        """Kill Muster, and start another one on the same folder."""
        assert self.server.process is not None
        self.screen.say("Muster is killed (SIGKILL)", "red")
        await self._note_place("all on the consumer protocol", "muster")
        killed_s = time.monotonic()
        await self.server.process.kill()
        acknowledged = self._ledger.committed(killed_s)
        found = await mover.fetch_committed_there(self.broker.bootstrap, GROUP, TOPIC, PARTITIONS)
        await self.server.start()
        back_s = time.monotonic()
        self._kill = Kill(acknowledged, found, back_s - killed_s)
        self.screen.say(f"it is back on the same folder after {back_s - killed_s:.1f} s")
        is_back = await self._wait(lambda: self._have_committed(back_s))
        took_s = time.monotonic() - killed_s if is_back else None
        note = "until every consumer had a commit acknowledged again"
        self._note_change(Change("Muster was killed and restarted", GROUP, took_s, 0, note))
        await asyncio.sleep(HOLD_S)
        await self._note_place("after the kill", "muster")

    # ------------------------------------------------------------------------- implementation

    async def _start_worker(self, name: str, bootstrap: str, protocol: str) -> None:
        arguments = (name, bootstrap, GROUP, TOPIC, protocol)
        worker = Worker(name, _WORKER, *arguments, folder=self._folder)
        self._workers[name] = worker
        await worker.start_recording(self._add)

    async def _stop_worker(self, name: str) -> None:
        worker = self._workers.pop(name)
        code = await worker.terminate()
        if code != 0:
            self._failures.append(f"{name} ended with {code}: {worker.tail()}")

    def _add(self, event: Event) -> None:
        self._reads.add(event)
        if event.kind is not Kind.READ:
            self._ledger.add(event)

    async def _settle(
        self,
        title: str,
        began_s: float,
        names: Sequence[str],
        works: Callable[[], bool] = lambda: True,
    ) -> None:
        """Wait until the group has settled and works, and record how long that took."""
        has_settled = await self._wait(lambda: self._is_settled(began_s, names) and works())
        moves = self._ledger.moves(began_s, float("inf"))
        ended_s = moves[-1].at_s if moves else time.monotonic()
        took_s = ended_s - began_s if has_settled else None
        moved = sum(len(event.partitions) for event in moves if event.kind is Kind.ASSIGNED)
        gap_s = compute_longest_gap_s(self._ledger.ownerships(), began_s)
        note = f"no partition was without an owner for more than {gap_s:.2f} s"
        self._note_change(Change(title, GROUP, took_s, moved, note))

    def _is_settled(self, since_s: float, names: Sequence[str]) -> bool:
        """Whether each partition has an owner, and ``names`` were told since a moment.

        All consumers must own some, and nothing may have moved for a while.
        """
        owners = self._ledger.owners_now()
        if len(owners) != PARTITIONS or set(owners.values()) != set(self._workers):
            return False
        moves = self._ledger.moves(since_s, float("inf"))
        told = {event.worker for event in moves if event.kind is Kind.ASSIGNED}
        is_quiet = not moves or time.monotonic() - moves[-1].at_s > _QUIET_S
        return told.issuperset(names) and is_quiet

    def _have_committed(self, since_s: float) -> bool:
        done = {
            event.worker
            for event in self._ledger.events
            if event.kind is Kind.COMMITTED and event.at_s > since_s
        }
        return done.issuperset(NAMES)

    async def _wait(self, condition: Callable[[], bool]) -> bool:
        deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
        while not condition():
            self._notice_failures()
            if time.monotonic() > deadline_s:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _notice_failures(self) -> None:
        processes = {"Muster": self.server.process, "Kafka": self.broker.process, **self._workers}
        for name, process in processes.items():
            if process is not None and process.exit_code is not None:
                self._failures.append(f"{name} ended with {process.exit_code}: {process.tail()}")
        if self._failures:
            raise SceneFailed

    async def _note_place(self, when: str, wanted: str) -> None:
        place = await mover.find_place(self.server.addresses["grpc"], GROUP)
        self._stays.append(Stay(when, place, wanted))

    def _note_change(self, change: Change) -> None:
        self._changes.append(change)
        took = "did not settle" if change.converged_s is None else f"{change.converged_s:.2f} s"
        self.screen.say(f"{change.title}: {took}, {change.moved} partitions assigned", "green")

    # ------------------------------------------------------------------------------------ end

    async def finish(self) -> None:
        """Let the consumers read the rest, and stop them as users would."""
        if self._producer is not None:
            await asyncio.to_thread(self._producer.stop)
            ends = dict(self._producer.end_offsets)
            if not self._failures:
                await self._wait(lambda: not self._reads.count_missing(ends))
        for name in list(self._workers):
            await self._stop_worker(name)

    async def abandon(self) -> None:
        """Leave no process behind, whatever happened."""
        self.screen.stop()
        for process in (*self._workers.values(), self.server.process, self.broker.process):
            if process is not None and process.exit_code is None:
                await process.kill()
        if self._producer is not None:
            await asyncio.to_thread(self._producer.stop)

    def checks(self) -> list[Check]:
        """The checks, computed from what was recorded."""
        producer = self._producer
        ends = {} if producer is None else dict(producer.end_offsets)
        checks = [
            check_reads(self._reads, ends),
            check_duplicates(self._reads),
            check_owners(self._ledger.ownerships()),
        ]
        if self._kill is not None:
            checks.append(check_kill(self._kill))
        return [
            *checks,
            check_stays(self._stays),
            check_members_there(self._members_there, NAMES),
            check_converged(self._changes),
            check_clients(self._failures, 0 if producer is None else producer.failed),
        ]

    def print_summary(self, checks: Sequence[Check]) -> None:
        """Print the summary."""
        print_summary(self.screen, checks, "how long each change took", self._changes)
