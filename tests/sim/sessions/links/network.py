"""Connections between applications and the server, as TCP is: in order, and perhaps never.

What one connection still carries comes when it comes: a newer connection does not wait for it. A
way that is held keeps what is sent on it and delivers it later, in its order, as after
retransmissions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from random import Random
from typing import Any, Final, Protocol, TypeAlias

import grpc.aio

from tests.sim.sessions.faults import Faults
from tests.sim.sessions.machines.loop import Machine, VirtualLoop

Frame: TypeAlias = tuple[Any, ...]

EOF: Final[Any] = grpc.aio.EOF  # type: ignore[attr-defined]
"""What a read gives when nothing more comes; the stubs of ``grpc.aio`` do not know the name."""

_FAST_S = (0.0002, 0.003)
_STEP_S = 1e-6
_GAPS_S = (0.0, 0.0, 0.02)
_KEEPALIVE_S = 30.0
_AGAIN_S = 0.25


class End(Protocol):
    """One end of a connection."""

    machine: Machine

    def receive(self, connection: Connection, frame: Frame) -> None:
        """A frame has come."""

    def on_broken(self, connection: Connection, why: str) -> None:
        """The connection is no more."""


class Way:
    """One direction of a connection."""

    def __init__(self, network: Network, deliver: Callable[[Frame], None], to: Machine) -> None:
        self._network = network
        self._deliver = deliver
        self._to = to
        self._last_s = 0.0
        self._kept: list[Frame] = []
        self.is_held = False
        self.is_cut = False

    def send(self, frame: Frame) -> None:
        if self.is_cut:
            return
        if self.is_held:
            self._kept.append(frame)
        else:
            self._carry(frame, self._network.delay_s())

    def release(self, gap_s: float) -> None:
        """What was kept comes now, one after another."""
        kept, self._kept = self._kept, []
        self.is_held = False
        for frame in kept:
            self._carry(frame, self._network.delay_s() + gap_s)

    def cut(self) -> None:
        """Nothing more comes, nor what was kept."""
        self.is_cut = True
        self._kept.clear()

    def _carry(self, frame: Frame, delay_s: float) -> None:
        loop = self._network.loop
        at_s = max(loop.time() + delay_s, self._last_s + _STEP_S)
        self._last_s = at_s
        loop.call_at(at_s, self._arrive, frame, context=self._to.context)

    def _arrive(self, frame: Frame) -> None:
        # What was under way when the connection was cut is gone too.
        if not self.is_cut:
            self._deliver(frame)


class Connection:
    """A TCP connection with an end at the client and one at the server."""

    def __init__(self, network: Network, number: int, client: End, server: End) -> None:
        self.number = number
        self.client = client
        self.server = server
        self._network = network
        self.up = Way(network, self._deliver_up, server.machine)
        self.down = Way(network, self._deliver_down, client.machine)
        self.is_open = True

    def _deliver_up(self, frame: Frame) -> None:
        self._network.delivered += 1
        self._network.note(f"{self.number} up {frame[0]}")
        self.server.receive(self, frame)

    def _deliver_down(self, frame: Frame) -> None:
        self._network.note(f"{self.number} down {frame[0]}")
        self._network.on_frame(self)
        self.client.receive(self, frame)

    def hold(self, ways: Sequence[Way], duration_s: float, *, is_lost: bool = False) -> None:
        """Carries nothing on these for a while; then all that was sent comes, or nothing ever."""
        for way in ways:
            way.is_held = True
        network = self._network

        def release() -> None:
            gap_s = network.random.choice(_GAPS_S)
            for way in ways:
                if is_lost and not network.faults.is_healed:
                    way.cut()
                elif way.is_held:
                    way.release(gap_s)
            if is_lost:
                network.later(_KEEPALIVE_S, self.reset)

        network.later(duration_s, release)
        network.held.append(self)

    def release_all(self) -> None:
        """The network is well again."""
        for way in (self.up, self.down):
            if way.is_held:
                way.release(0.0)
            if way.is_cut:
                self.reset()

    def reset(self) -> None:
        """Both ends find it broken, each in its time; what is under way is lost."""
        if not self.is_open:
            return
        self.forget()
        for end in (self.client, self.server):
            self.break_at(end, self._network.delay_s())

    def break_at(self, end: End, delay_s: float) -> None:
        """One end finds out."""
        loop = self._network.loop
        loop.call_later(delay_s, end.on_broken, self, "reset", context=end.machine.context)

    def forget(self) -> None:
        """It carries nothing more."""
        self.is_open = False
        self.up.cut()
        self.down.cut()
        self._network.connections.pop(self.number, None)


class Network:
    """Makes connections, and says how long all takes."""

    def __init__(
        self, loop: VirtualLoop, random: Random, faults: Faults, note: Callable[[str], None]
    ) -> None:
        self.loop = loop
        self.random = random
        self.faults = faults
        self.note = note
        self.delivered = 0
        self.on_frame: Callable[[Connection], None] = lambda connection: None
        self.connections: dict[int, Connection] = {}
        self.held: list[Connection] = []
        self.server: End | None = None
        self.slow_s = 0.0
        self._dark: dict[str, float] = {}
        self._number = 0

    def delay_s(self) -> float:
        """How long a frame is on its way."""
        if self.faults.strikes("delay"):
            return self.random.expovariate(1 / 0.3)
        return self.random.uniform(*_FAST_S) + self.slow_s

    def later(self, delay_s: float, what: Callable[[], None]) -> None:
        """The network does something; no machine that stalls holds it up."""
        self.loop.call_later(delay_s, what, context=Context())

    def darken(self, machine: Machine, duration_s: float) -> None:
        """Nobody reaches the server from this machine for a while, on any connection."""
        until_s = self.loop.time() + duration_s
        self._dark[machine.name] = max(until_s, self._dark.get(machine.name, 0.0))
        for connection in tuple(self.connections.values()):
            if connection.client.machine is machine:
                connection.hold((connection.up, connection.down), duration_s)

    def heal(self) -> None:
        """All that was held comes, and nothing is held any more."""
        self._dark.clear()
        for connection in self.held:
            if connection.is_open:
                connection.release_all()
        self.held.clear()

    def connect(
        self, client: End, on_connected: Callable[[Connection], None], on_failed: Callable[[], None]
    ) -> None:
        """Tries once."""
        context = client.machine.context

        def answer() -> None:
            if self._dark.get(client.machine.name, 0.0) > self.loop.time():
                self.loop.call_later(_AGAIN_S, answer, context=context)
                return
            server = self.server
            if server is None:
                on_failed()
                return
            self._number += 1
            connection = Connection(self, self._number, client, server)
            self.connections[self._number] = connection
            self.note(f"{self._number} connected {client.machine.name} {server.machine.name}")
            on_connected(connection)

        self.loop.call_later(2 * self.delay_s(), answer, context=context)
