"""Everything there is in one seed: machines, applications, network, server, disk and checkers."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Coroutine
from typing import Any

from model.configs.coordinator_settings import CoordinatorSettings
from tests.sim.checkers.violations import Violation
from tests.sim.sessions.admin import Administrator
from tests.sim.sessions.application import Application, Options
from tests.sim.sessions.faults import Faults
from tests.sim.sessions.ledger import Ledger, Place
from tests.sim.sessions.links.network import Connection, Network
from tests.sim.sessions.machines.loop import Machine, VirtualLoop
from tests.sim.sessions.machines.process import Server
from tests.sim.sessions.owners import Ghosts, check_owners, find_members
from tests.support.virtual.disk import Write

LOOK_EVERY_S = 0.25
LONGEST_HOLD_S = 12.0


def choose_settings(rng: random.Random) -> CoordinatorSettings:
    """Short timeouts, so that much happens in a seed."""
    session_ms = rng.choice((4_000, 6_000, 9_000))
    return CoordinatorSettings(
        group_consumer_session_timeout_ms=session_ms,
        group_consumer_min_session_timeout_ms=2_000,
        group_consumer_max_session_timeout_ms=60_000,
        group_consumer_heartbeat_interval_ms=rng.choice((500, 700)),
        group_consumer_min_heartbeat_interval_ms=500,
        group_consumer_assignment_interval_ms=rng.choice((0, 0, 500)),
        group_initial_rebalance_delay_ms=rng.choice((0, 500)),
        group_min_session_timeout_ms=1_000,
    )


class World:
    """``seed`` decides all of it."""

    def __init__(self, seed: int, verbose: bool = False) -> None:
        self.seed = seed
        self.verbose = verbose
        self.random = rng = random.Random(seed)
        self.faults = Faults.choose(rng)
        self.settings = choose_settings(rng)
        self.loop = VirtualLoop(lambda: rng.uniform(0.0, 0.02))
        self.network = Network(self.loop, rng, self.faults, self.note)
        self.ledger = Ledger()
        self.trace = hashlib.blake2b(digest_size=8)
        self.server = Server(
            self.loop, rng, self.faults, self.network, self.settings, self._on_write, _ignore
        )
        self.server.after_crash = self._after_crash
        self.machines: list[Machine] = []
        self.applications: list[Application] = []
        self.read_s: dict[Place, float] = {}
        self.admin_machine = Machine("admin")
        self.admin: Administrator | None = None
        self.ghosts = Ghosts(self._longest_ghost_s)
        self.ghosts_left: set[tuple[str, str]] = set()
        self._frame_watches: dict[str, list[Callable[[], None]]] = {}
        self._server_count = 0
        self._names = 0
        self.on_joined: Callable[[Application], None] = lambda application: None
        self.network.on_frame = self._on_frame
        self.network.later(LOOK_EVERY_S, self._look)

    # --------------------------------------------------------------------------------- notes

    def note(self, what: str) -> None:
        """What happens, for the trace."""
        self.trace.update(f"{self.loop.time():.6f} {what}\n".encode())
        if self.verbose:
            print(f"{self.loop.passed_s:9.4f} {what}")

    def note_read(self, place: Place) -> None:
        """A partition was read by its owner."""
        self.read_s[place] = self.loop.time()

    def longest_session_s(self) -> float:
        """The longest session timeout that anybody may go by."""
        timeouts_ms = {self.settings.group_consumer_session_timeout_ms}
        timeouts_ms.update(app.options.session_timeout_ms for app in self.applications)
        if self.admin is not None:
            timeouts_ms |= self.admin.timeouts_ms
        return max(timeouts_ms) / 1000

    def _longest_ghost_s(self, group: str) -> float:
        """How long a member may be there that nobody speaks for."""
        bound_s = self.longest_session_s()
        if not self.faults.is_healed:
            # What comes late speaks for it once more.
            bound_s += LONGEST_HOLD_S
        members = [app for app in self.applications if app.group == group]
        if any(app.options.is_classic for app in members):
            # While it joins its session does not run, as in Kafka.
            bound_s += max(app.options.rebalance_timeout_ms for app in members) / 1000
        return bound_s

    # ------------------------------------------------------------------------------ checking

    def on_gained(self) -> None:
        """S2, at the moment at which somebody owns more."""
        try:
            check_owners(self.applications)
        except Violation as violation:
            self.loop.fail(violation)

    def _look(self) -> None:
        self.on_gained()
        try:
            self._look_for_ghosts()
        except Violation as violation:
            self.loop.fail(violation)
        self.network.later(LOOK_EVERY_S, self._look)

    def _look_for_ghosts(self) -> None:
        server = self.server
        runtime = server.runtime
        is_new = self._server_count != len(server.machines)
        self._server_count = len(server.machines)
        if runtime is None or not runtime.ready() or is_new or server.machine.stalls:
            self.ghosts.forget()
            return
        speakers = {(app.group, app.speaks_as()): app.name for app in self.applications}
        self.ghosts_left = self.ghosts.look(find_members(runtime), speakers, self.loop.time())

    def _on_write(self, write: Write) -> None:
        try:
            self.ledger.note_write(write)
        except Violation as violation:
            self.loop.fail(violation)

    def _after_crash(self) -> None:
        self.note(f"server crash {len(self.server.disk.writes)}")
        try:
            self.ledger.rebuild(self.server.disk.writes)
        except Violation as violation:
            self.loop.fail(violation)

    # ---------------------------------------------------------------------------- machinery

    def watch_frames(self, machine: Machine, on_frame: Callable[[], None]) -> None:
        """Calls back for each frame that comes to the machine from now on."""
        self._frame_watches.setdefault(machine.name, []).append(on_frame)

    def _on_frame(self, connection: Connection) -> None:
        for watch in self._frame_watches.get(connection.client.machine.name, ()):
            watch()

    def make_machine(self) -> Machine:
        """A machine with a clock of its own: 1 % fast or slow at most."""
        rng = self.random
        machine = Machine(
            f"m{len(self.machines)}",
            rate=rng.uniform(0.99, 1.01),
            offset_s=rng.uniform(0.0, 100_000.0),
        )
        self.machines.append(machine)
        return machine

    def run_on(self, machine: Machine, what: Callable[[], object]) -> None:
        """Runs code of a machine, in its own turn."""
        self.loop.call_soon(what, context=machine.context)

    def start_application(self, machine: Machine, target: str, options: Options) -> None:
        """It begins in the next turn."""

        def start() -> None:
            self._names += 1
            name = f"{machine.name}.a{self._names}"
            self.applications.append(Application(name, machine, target, options, self))

        self.run_on(machine, start)

    def start_admin(self) -> None:
        """The administrator's connection."""

        def start() -> None:
            self.admin = Administrator(self.network, self.ledger, self.note)

        self.run_on(self.admin_machine, start)

    def administrate(self, what: Callable[[Administrator], Coroutine[Any, Any, None]]) -> None:
        """Has the administrator do something."""

        def start() -> None:
            assert self.admin is not None
            self.loop.create_task(what(self.admin))

        self.run_on(self.admin_machine, start)

    def crash_machine(self, machine: Machine) -> None:
        """Its process is gone; the kernel ends its connections, sooner or later."""
        self.faults.note("client crash")
        self.note(f"{machine.name} crashes")
        machine.is_dead = True
        for application in self.applications:
            if application.machine is machine:
                application.is_done = True
        self.applications = [app for app in self.applications if app.machine is not machine]
        for connection in tuple(self.network.connections.values()):
            if connection.client.machine is machine:
                connection.up.send(("fin",))


def _ignore(writes: object) -> None:
    pass
