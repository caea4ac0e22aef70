"""The server: the real runtime and the real servicers as one process after another on one disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeVar

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.configs.coordinator_settings import CoordinatorSettings
from tests.sim.checkers.violations import Violation
from tests.sim.sessions.faults import Faults
from tests.sim.sessions.links.network import Connection, Network
from tests.sim.sessions.machines.loop import Machine, VirtualLoop
from tests.support.memory import MemoryLogStore
from tests.support.virtual.disk import SimDisk, Write
from tests.support.virtual.scheduler import START_WALL_MS

T = TypeVar("T")
LOG_PARTITIONS = 2
_GRACE_S = 2.0
_REFUSED_S = (0.001, 0.2, 3.0)
_DOWN_S = (0.05, 0.5, 2.0)


class InOrder(dict[Any, None]):
    """As much of a set as a door uses, in the order in which things were added."""

    def add(self, item: object) -> None:
        self[item] = None

    def discard(self, item: object) -> None:
        self.pop(item, None)


class LoopScheduler:
    """``Scheduler`` and ``Clock`` of the runtime on the virtual loop."""

    waits_for_syncs = False

    def __init__(self, loop: VirtualLoop, takes_s: Callable[[], float]) -> None:
        self._loop = loop
        self._takes_s = takes_s
        self._free_at_s = {"blocking": 0.0, "computing": 0.0, "matching": 0.0}

    def wall_ms(self) -> int:
        return START_WALL_MS + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_soon(self, callback: Callable[[], None]) -> object:
        return self._loop.call_soon(callback)

    def call_later_ms(self, delay_ms: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, callback)

    def run_blocking(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run("blocking", work, done)

    def run_sync(
        self,
        work: Callable[[], None],
        done: Callable[[BaseException | None], None],
        *,
        may_wait: bool,
    ) -> None:
        owner = getattr(work, "__self__", None)
        if isinstance(owner, SimDisk):
            owner.begin_sync()
        self.run_blocking(work, done)

    def run_computing(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run("computing", work, done)

    def run_matching(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        self._run("matching", work, done)

    def run_apart(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        self.run_computing(work, done)

    def _run(
        self, lane: str, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None:
        now_s = self._loop.time()
        ends_s = max(self._free_at_s[lane], now_s) + self._takes_s()
        self._free_at_s[lane] = ends_s

        def finish() -> None:
            result: T | BaseException
            try:
                result = work()
            except Exception as failure:  # noqa: BLE001 - handed to ``done`` as the seam says
                result = failure
            # The loop hears of it in a turn of its own: a crash may come between.
            self._loop.call_soon(done, result)

        self._loop.call_at(ends_s, finish)


class Server:
    """Starts, stops, dies and stands still. ``on_restart`` is called when a process is there."""

    def __init__(
        self,
        loop: VirtualLoop,
        random: Random,
        faults: Faults,
        network: Network,
        settings: CoordinatorSettings,
        on_write: Callable[[Write], None],
        on_sync: Callable[[Sequence[Write]], None],
    ) -> None:
        self.loop = loop
        self.random = random
        self.faults = faults
        self.network = network
        self.settings = settings
        self.disk = SimDisk(
            MemoryLogStore(LOG_PARTITIONS),
            on_write=on_write,
            on_sync=on_sync,
            is_stalled=lambda: False,
        )
        self.machines: list[Machine] = []
        self.runtime: Runtime | None = None
        self.is_up = False
        self.since_s = loop.time()
        self._is_stopping = False
        self.after_crash: Callable[[], None] = lambda: None
        self._door: GrpcServer | None = None

    @property
    def machine(self) -> Machine:
        """Of the latest process."""
        return self.machines[-1]

    def start(self) -> None:
        """A process begins on what the disk has."""
        machine = Machine(f"server{len(self.machines)}")
        self.machines.append(machine)
        self.loop.call_soon(self._begin, context=machine.context)

    def _begin(self) -> None:
        scheduler = LoopScheduler(self.loop, self._takes_s)
        self.runtime = Runtime(
            self.disk,
            self.settings,
            clock=scheduler,
            scheduler=scheduler,
            on_failure=self._on_failure,
        )
        self.runtime.begin_load()
        self._door = GrpcServer(self.runtime, AllowAll(), GrpcSettings())
        # These are told in any order where it stops: here always in the same.
        self._door._services.sessions._sessions = InOrder()  # type: ignore[assignment]
        self._door._waits._waiting = InOrder()  # type: ignore[assignment]
        self.loop.create_task(self._serve(self._door))

    async def _serve(self, door: GrpcServer) -> None:
        await door.start("127.0.0.1", 0)
        self.is_up = True
        self._is_stopping = False
        self.since_s = self.loop.time()

    def crash(self) -> None:
        """The process dies; what was not synced may be lost, from the end."""
        if not self.is_up:
            return
        self.faults.note("server crash")
        machine = self.machine
        machine.is_dead = True
        self._leave_network()
        survivors = self.disk.unsynced
        if self.faults.is_on("writes lost"):
            survivors = self.random.randint(0, survivors)
        if lost := self.disk.crash(survivors):
            self.faults.happened["writes lost"] += lost
        self.after_crash()
        for connection in self._connections_of(machine):
            # The clients hear of it at once, or when they ask the next process.
            connection.up.cut()
            connection.down.cut()
            connection.break_at(connection.client, self.random.choice(_REFUSED_S))
        self._start_later()

    def stop(self) -> None:
        """The process ends as it does where it is asked to, and another one follows."""
        if not self.is_up or self._is_stopping:
            return
        self.faults.note("server stop")
        self._is_stopping = True
        self.loop.call_soon(self._stop, context=self.machine.context)

    def _stop(self) -> None:
        self.loop.create_task(self._end())

    async def _end(self) -> None:
        assert self._door is not None
        assert self.runtime is not None
        machine = self.machine
        await self._door.stop(_GRACE_S)
        await self.runtime.stop()
        # What the connections still carry to the clients arrives.
        await asyncio.sleep(0.01)
        machine.is_dead = True
        self._leave_network()
        for connection in self._connections_of(machine):
            connection.break_at(connection.client, 0.01)
        self._start_later()

    def stall(self, duration_s: float) -> None:
        """The process stands still; its disk and its clocks go on."""
        self.faults.note("server stall")
        self.loop.stall(self.machine, duration_s)

    def _leave_network(self) -> None:
        self.is_up = False
        self.runtime = None
        self.network.server = None

    def _connections_of(self, machine: Machine) -> Iterator[Connection]:
        for connection in tuple(self.network.connections.values()):
            if connection.server.machine is machine:
                yield connection

    def _start_later(self) -> None:
        self.network.later(self.random.choice(_DOWN_S), self.start)

    def _takes_s(self) -> float:
        if self.faults.strikes("slow sync"):
            return self.random.choice((0.02, 0.3, 1.0))
        return self.random.uniform(0.0, 0.002)

    def _on_failure(self, failure: BaseException) -> None:
        self.loop.fail(
            failure
            if isinstance(failure, Violation)
            else Violation("S12", f"the runtime gave up: {failure!r}")
        )
