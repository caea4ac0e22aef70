"""What happens in a seed: who is there, and which faults strike when."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from random import Random
from typing import Any

from tests.sim.sessions.admin import Administrator
from tests.sim.sessions.application import Application, Options
from tests.sim.sessions.links.network import Connection
from tests.sim.sessions.world import LONGEST_HOLD_S, World

FAULTS_S = 30.0
CONSUMER, CLASSIC = "shop", "classic"
_TOPICS = {"orders": 4, "audit": 2}
_EVERY_S = (0.4, 1.0, 2.0)
_CRASHES_MAX = 3
_TIMEOUTS_MS = (2_000, 2_000, 3_000, 6_000, 12_000, 20_000)
_TIMED = (
    "half-open",
    "one way",
    "reset",
    "blackout",
    "server crash",
    "server stop",
    "server stall",
    "client stall",
    "client crash",
    "session timeout changed",
    "topic grown",
    "topic deleted",
)


class Scenario:
    """Makes the world's inhabitants and their trouble."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random: Random = world.random
        rng = self._random
        kinds = rng.choice(((CONSUMER,), (CONSUMER,), (CONSUMER,), (CONSUMER, CLASSIC), (CLASSIC,)))
        self.groups: tuple[str, ...] = kinds
        self._every_s = rng.choice(_EVERY_S)
        self._restarts_left = _CRASHES_MAX
        # What goes wrong depends on how these compare to the session timeout.
        self._rebalance_ms = rng.choice(((1_500, 3_000), (1_500, 20_000), (20_000, 60_000)))
        self._lives_s = rng.choice((6.0, 15.0, 40.0))
        self._pace_s = rng.choice((0.15, 0.4, 1.0))
        self._assignors = rng.choice((("range",), ("cooperative-sticky",)))
        self._can_delete = CLASSIC not in kinds
        world.on_joined = self._on_joined

    def begin(self) -> None:
        """The server, the topics, the applications; then faults strike."""
        world = self._world
        world.server.start()
        world.start_admin()
        for name, partitions in _TOPICS.items():
            world.administrate(partial(_create, name, partitions))
        for _ in range(self._random.randint(2, 4)):
            self._start_machine()
        world.network.later(self._next_s(), self._strike)

    def end(self) -> None:
        """Faults have stopped: all that waits goes on, and somebody is in each group."""
        world = self._world
        world.faults.is_healed = True
        world.network.heal()
        world.ghosts.forget()
        for group in self.groups:
            if not any(app.group == group and not app.is_done for app in world.applications):
                machine = world.make_machine()
                world.start_application(machine, machine.name, self._choose_options(group))

    def _next_s(self) -> float:
        return self._random.expovariate(1 / self._every_s)

    # --------------------------------------------------------------------------- inhabitants

    def _start_machine(self) -> None:
        machine = self._world.make_machine()
        shares = self._random.random() < 0.7
        for number in range(self._random.randint(1, 2)):
            target = machine.name if shares else f"{machine.name}:{number}"
            group = self._random.choice(self.groups)
            self._world.start_application(machine, target, self._choose_options(group))

    def _choose_options(self, group: str) -> Options:
        rng, faults = self._random, self._world.faults
        polls = faults.is_on("polls too rarely")
        return Options(
            group=group,
            topics=tuple(_TOPICS) if rng.random() < 0.7 else ("orders",),
            is_classic=group == CLASSIC,
            rebalance_timeout_ms=rng.choice(self._rebalance_ms),
            session_timeout_ms=6_000,
            heartbeat_interval_ms=rng.choice((500, 1_000)),
            assignors=self._assignors,
            max_poll_interval_ms=rng.choice((3_000, 5_000)) if polls else None,
            pace_s=self._pace_s,
            lives_s=self._lives_s,
        )

    def _on_joined(self, application: Application) -> None:
        """Promises that were just made are changed."""
        faults = self._world.faults
        if not application.options.is_classic and faults.strikes("session timeout changed"):
            delay_s = self._random.choice((0.0, 0.1, 0.5, 2.0))
            self._world.network.later(delay_s, self._change_timeout)

    # -------------------------------------------------------------------------------- faults

    def _strike(self) -> None:
        world = self._world
        if world.faults.is_healed:
            return
        kinds = [kind for kind in _TIMED if world.faults.is_on(kind)]
        if kinds:
            self._do(self._random.choice(kinds))
        world.network.later(self._next_s(), self._strike)

    def _do(self, kind: str) -> None:
        match kind:
            case "half-open" | "one way" | "reset":
                self._trouble_connection(kind)
            case "server crash" | "server stop" | "server stall":
                self._trouble_server(kind)
            case "blackout" | "client stall" | "client crash":
                self._trouble_machine(kind)
            case _:
                self._administrate(kind)

    def _trouble_machine(self, kind: str) -> None:
        world, rng = self._world, self._random
        machine = rng.choice(world.machines)
        if machine.is_dead:
            return
        match kind:
            case "blackout":
                world.faults.note(kind)
                world.network.darken(machine, rng.uniform(0.5, LONGEST_HOLD_S))
            case "client stall":
                if not machine.stalls:
                    world.faults.note(kind)
                    world.loop.stall(machine, rng.choice((0.3, 2.0, 7.0, 12.0)))
            case _:
                if rng.random() < 0.2:
                    world.crash_machine(machine)
                    self._start_machine()

    def _administrate(self, kind: str) -> None:
        world, rng = self._world, self._random
        if kind == "session timeout changed":
            world.faults.note(kind)
            self._change_timeout()
        elif rng.random() < 0.3:
            if kind == "topic grown":
                world.faults.note(kind)
                world.administrate(lambda admin: admin.grow("orders"))
            elif self._can_delete:
                world.faults.note(kind)
                pause_s = rng.choice((0.0, 0.1, 3.0))
                world.administrate(lambda admin: admin.create_again("audit", 2, pause_s))

    def _trouble_connection(self, kind: str) -> None:
        world, rng = self._world, self._random
        connections = sorted(
            (each for each in world.network.connections.values() if self._is_of_members(each)),
            key=lambda each: each.number,
        )
        if not connections:
            return
        connection = rng.choice(connections[-6:])
        world.faults.note(kind)
        world.note(f"{connection.number} {kind}")
        duration_s = rng.uniform(0.2, 10.0)
        if kind == "reset":
            connection.reset()
        elif kind == "half-open":
            is_lost = rng.random() < 0.3
            connection.hold((connection.up, connection.down), duration_s, is_lost=is_lost)
        else:
            connection.hold((rng.choice((connection.up, connection.down)),), duration_s)

    def _is_of_members(self, connection: Connection) -> bool:
        return connection.client.machine is not self._world.admin_machine

    def _trouble_server(self, kind: str) -> None:
        server = self._world.server
        if not server.is_up or server.machine.stalls:
            return
        if kind == "server stall":
            server.stall(self._random.choice((0.3, 2.0, 7.0)))
        elif self._restarts_left:
            self._restarts_left -= 1
            if kind == "server crash":
                server.crash()
            else:
                server.stop()

    def _change_timeout(self) -> None:
        if CONSUMER in self.groups:
            timeout_ms = self._random.choice(_TIMEOUTS_MS)
            self._world.administrate(lambda admin: admin.set_session_timeout(CONSUMER, timeout_ms))


def _create(name: str, partitions: int, admin: Administrator) -> Coroutine[Any, Any, None]:
    return admin.create(name, partitions)
