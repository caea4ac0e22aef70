"""The real door of the Kafka wire, on virtual time and without sockets."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import Any

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.loop.slices import Slices
from gateway.api import GatewayNode
from gateway.apis.api_registry import APIS
from gateway.apis.groups import k11_join_group, k68_consumer_group_heartbeat
from gateway.connection.connection import Connection
from gateway.connection.connection_turns import Turns
from gateway.connection.refusals import Refusals
from gateway.connection.shared import Shared
from gateway.headers import Routes
from gateway.heartbeats.heartbeat_wire import encode_heartbeat_response
from gateway.heartbeats.heartbeats import Heartbeats
from gateway.settings import GatewaySettings
from gateway.wire_listener import make_plain_listener
from tests.sim.checkers.violations import check
from tests.sim.cluster.process import Call, ServerProcess
from tests.sim.wire.checked import CheckedCoordinator
from tests.sim.wire.links import ServerEnd

SWEEP_MS = 1_000

_LISTENER = make_plain_listener("127.0.0.1", 9_092)


class ProcessClock:
    """``gateway.wire_clock.Clock`` of a simulated process."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    def time(self) -> float:
        return self._process.monotonic_ms() / 1_000

    def call_later(self, delay: float, callback: Callable[[], object]) -> Call:
        def call() -> None:
            callback()

        return self._process.call_later_ms(max(round(delay * 1_000), 0), call)


@cache
def _routes(elements_max: int) -> Routes:
    """Compiled once: they know nothing of a server."""
    return Routes(APIS, elements_max)


class Gateway:
    """What the connections of one server process share."""

    def __init__(
        self, process: ServerProcess, coordinator: CheckedCoordinator, settings: GatewaySettings
    ) -> None:
        self._clock = clock = ProcessClock(process)
        runtime: Any = coordinator
        authorizer = AllowAll()
        topics: Any = None
        heartbeats = Heartbeats(runtime, authorizer, settings, clock, encode_heartbeat_response)
        node = GatewayNode(
            runtime,
            authorizer,
            topics,
            settings,
            clock,
            heartbeats,
            Slices(process.call_soon, process.call_later_ms, process.monotonic_ms),
            APIS,
            allows_all=True,
        )
        self._shared = Shared(
            node,
            _routes(settings.gateway_array_elements_max),
            Refusals(clock.time),
            Turns(clock, clock.time),
            2**30,
        )
        clock.call_later(SWEEP_MS / 1_000, self._sweep)

    def connect(self, transport: ServerEnd) -> Connection:
        """A client has connected."""
        connection = Connection(self._shared, _LISTENER)
        connection.connection_made(transport)
        return connection

    def _sweep(self) -> None:
        for connection in tuple(self._shared.connections):
            connection.check_deadlines(self._clock.time())
        refused = self._shared.refusals.counts
        check(not refused, "L2", f"connections of sound clients were refused: {refused}")
        self._clock.call_later(SWEEP_MS / 1_000, self._sweep)


class _SeededUuids:
    """Stands in for the module ``uuid``."""

    UUID = uuid.UUID

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)


@contextmanager
def seeded_member_ids(seed: int) -> Iterator[None]:
    """Member ids that the door hands out are the same in each run of a seed."""
    modules: tuple[Any, ...] = (k11_join_group, k68_consumer_group_heartbeat)
    for module in modules:
        module.uuid = _SeededUuids(seed)
    try:
        yield
    finally:
        for module in modules:
            module.uuid = uuid
