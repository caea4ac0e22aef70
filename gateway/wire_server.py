"""The Kafka listener: starts, drains and stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from coordinator.runtime.api import Coordinator
from coordinator.runtime.audit import NO_AUDIT, Audit
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.loop.machine import compute_answers_max, read_memory_bytes
from coordinator.runtime.loop.slices import Slices
from coordinator.runtime.loop.stats import Histogram
from coordinator.runtime.trips.trips import Trips
from gateway.api import Api, GatewayNode
from gateway.apis.api_registry import APIS
from gateway.apis.fronted.fronted_registry import make_fronted_apis
from gateway.connected import Connected
from gateway.connection.connection import Connection
from gateway.connection.connection_turns import Turns
from gateway.connection.hang_ups import find_hung_up
from gateway.connection.listener import Listener, listen
from gateway.connection.refusals import Refusals
from gateway.connection.sasl_connection import make_connection
from gateway.connection.shared import Shared
from gateway.fronting.front import Front
from gateway.headers import make_routes
from gateway.heartbeats.heartbeat_wire import encode_heartbeat_response
from gateway.heartbeats.heartbeats import Heartbeats
from gateway.quotas.metered_connection import meter
from gateway.quotas.metering import look_at_quotas
from gateway.settings import GatewaySettings
from gateway.tls.decryptions import Decryptions
from gateway.tls.handshake import Handshake
from gateway.tls.handshakes import Handshakes
from gateway.topics.topic_catalogue import TopicCatalogue
from gateway.traces.traced_routes import TracedRoutes
from gateway.wire_clock import Clock, Timer
from gateway.wire_listener import WireListener, make_plain_listener
from security.quotas.client_quotas import ClientQuotas

logger = logging.getLogger("muster.gateway")

_SWEEP_S: Final = 1.0
_DRAIN_POLL_S: Final = 0.005
_BACKLOG: Final = 1_024


class KafkaServer:
    """Serves Kafka clients, on one address or several."""

    # More than 15 attributes: what it was given, and what it makes of that when it starts.

    def __init__(
        self,
        coordinator: Coordinator,
        authorizer: Authorizer,
        topics: TopicCatalogue,
        settings: GatewaySettings,
        *,
        clock: Clock | None = None,
        apis: tuple[Api, ...] = APIS,
        quotas: ClientQuotas | None = None,
        backlog: int = _BACKLOG,
        audit: Audit = NO_AUDIT,
        front: Front | None = None,
        trips: Trips | None = None,
    ) -> None:
        """``backlog`` bounds the connections that wait to be accepted, on each address.

        ``front``: the cluster that has all else than groups, if there is one. ``trips`` follows
        requests, if any are traced.
        """
        self._trips = trips
        self._coordinator = coordinator
        self._authorizer = authorizer
        self._topics = topics
        self._front = front
        self._settings = settings if front is None else replace(settings, node_id=front.node_id)
        self._clock = clock
        self._apis = apis if front is None else make_fronted_apis(apis)
        self._backlog = backlog
        self._quotas = quotas if quotas is not None else ClientQuotas()
        self._audit = audit
        self._shared: Shared | None = None
        self._heartbeats: Heartbeats | None = None
        self._handshakes: Handshakes | None = None
        self._decryptions: Decryptions | None = None
        self._servers: list[Listener] = []
        self._sweeper: Timer | None = None

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._shared.connections) if self._shared is not None else 0

    @property
    def refusals(self) -> dict[str, int]:
        """The number of refused connections by reason."""
        return dict(self._shared.refusals.counts) if self._shared is not None else {}

    @property
    def request_seconds(self) -> dict[str, Histogram]:
        """How long requests took, by the name of their API."""
        if self._shared is None:
            return {}
        names = {api.key: api.name for api in self._apis}
        return {names[key]: times for key, times in self._shared.times.by_key.items()}

    def count_parked(self) -> int:
        """How many heartbeats are held back until their member has to change something."""
        shared = self._shared
        connections = () if shared is None else shared.connections
        return sum(connection.is_parked for connection in connections)

    async def start(self, host: str, port: int) -> int:
        """Listen on one address for clients that do not authenticate; return the bound port."""
        return await self.listen(make_plain_listener(host, port))

    async def listen(self, listener: WireListener) -> int:
        """Listen on another address; return the bound port. Raises ``OSError``."""
        shared = self._shared or self._start_sharing()
        endpoint = listener.endpoint
        server = await listen(
            self._make_factory(shared, listener), endpoint.host, endpoint.port, self._backlog
        )
        self._servers.append(server)
        return server.port

    def _make_factory(
        self, shared: Shared, listener: WireListener
    ) -> Callable[[], asyncio.BaseProtocol]:
        """What an accepted socket is served by."""
        if listener.tls is None:
            return lambda: make_connection(shared, listener)
        clock, settings = shared.node.clock, self._settings
        handshakes = self._handshakes or Handshakes(
            clock, time.monotonic, settings.gateway_tls_handshakes_max
        )
        decryptions = self._decryptions or Decryptions(clock, time.monotonic)
        self._handshakes, self._decryptions = handshakes, decryptions
        return lambda: Handshake(shared, listener, handshakes, decryptions)

    def _start_sharing(self) -> Shared:
        """Make what the connections of all addresses share."""
        loop = asyncio.get_running_loop()
        clock: Clock = self._clock or loop
        heartbeats = Heartbeats(
            self._coordinator, self._authorizer, self._settings, clock, encode_heartbeat_response
        )
        node = GatewayNode(
            coordinator=self._coordinator,
            authorizer=self._authorizer,
            topics=self._topics,
            settings=self._settings,
            clock=clock,
            heartbeats=heartbeats,
            slices=Slices(
                lambda callback: clock.call_later(0, callback),
                lambda ms, callback: clock.call_later(ms / 1_000, callback),
                lambda: time.monotonic() * 1_000,
            ),
            apis=self._apis,
            allows_all=isinstance(self._authorizer, AllowAll),
            front=self._front,
        )
        routes = make_routes(node)
        if self._trips is not None:
            routes = TracedRoutes(routes, self._trips)
        settings = self._settings
        answers_max = compute_answers_max(
            settings.gateway_response_total_bytes, read_memory_bytes()
        )
        turns = Turns(clock, time.monotonic)
        refusals = Refusals(clock.time)
        shared = Shared(
            node, routes, refusals, turns, answers_max, self._audit, quotas=self._quotas
        )
        shared.on_connected = self._on_connected
        self._shared, self._heartbeats = shared, heartbeats
        self._sweeper = clock.call_later(_SWEEP_S, self._sweep)
        return shared

    def _sweep(self) -> None:
        """Close connections that are idle or too slow, or whose client has gone."""
        assert self._shared is not None
        clock = self._shared.node.clock
        now = clock.time()
        look_at_quotas(self._shared)
        for connection in list(self._shared.connections):
            connection.check_deadlines(now)
        for connection in find_hung_up(self._shared.connections):
            connection.abort()
        for connection in self._shared.connections:
            connection.measure_answers(now)
        self._shared.held.check_answers()
        self._sweeper = clock.call_later(_SWEEP_S, self._sweep)

    def _on_connected(self, connection: Connected) -> None:
        if self._quotas.is_active:
            assert isinstance(connection, Connection)
            meter(connection, self._quotas)

    async def drain(self, grace_s: float) -> None:
        """Stop accepting and reading; close each connection once its requests are answered.

        Parked heartbeats and waiting fetches are answered now; a member that waits for a rebalance
        gets NOT_COORDINATOR. Returns after ``grace_s`` seconds even if connections are left.
        """
        if self._shared is None or self._heartbeats is None:
            return
        for server in self._servers:
            server.close()
        self._heartbeats.stop_parking()
        connections = list(self._shared.connections)
        for number, connection in enumerate(connections):
            connection.drain()
            if number % self._settings.gateway_wake_slice == 0:
                await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._close_drained():  # noqa: ASYNC110 - once, at the end
                    await asyncio.sleep(_DRAIN_POLL_S)

    def _close_drained(self) -> bool:
        """Close the idle connections; whether any connection is left."""
        assert self._shared is not None
        for connection in list(self._shared.connections):
            if connection.is_idle:
                connection.close()
        return bool(self._shared.connections)

    async def stop(self, grace_s: float = 0.0) -> None:
        """Drain for at most ``grace_s`` seconds, then close every connection."""
        if self._shared is None:
            return
        await self.drain(grace_s)
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self._shared.connections):
            connection.close()
        for server in self._servers:
            server.close()
            await server.wait_closed()
        self._servers.clear()
