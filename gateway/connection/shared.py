"""The state that all connections of the Kafka wire share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator.runtime.audit import NO_AUDIT, Audit
from gateway.api import GatewayNode
from gateway.connected import Connected
from gateway.connection.admission import Admission
from gateway.connection.connection_turns import Turns
from gateway.connection.held_bytes import HeldBytes
from gateway.connection.idle import IdleConnections
from gateway.connection.refusals import Refusals
from gateway.headers import Routes
from gateway.request_times import RequestTimes
from gateway.sasl.failure_delays import FailureDelays
from security.quotas.client_quotas import ClientQuotas


def ignore_connection(connection: Connected) -> None:
    """What is done with a new connection that nobody has to know of."""


@dataclass(slots=True)
class Shared:
    """Shared state of the connections; ``answers_max`` bounds the bytes of unsent responses.

    ``audit`` is told who failed to authenticate.
    """

    node: GatewayNode
    routes: Routes
    refusals: Refusals
    turns: Turns
    answers_max: int
    audit: Audit = NO_AUDIT
    held: HeldBytes = field(init=False)
    idle: IdleConnections = field(init=False)
    delays: FailureDelays = field(init=False)
    admission: Admission = field(init=False)
    connections: set[Connected] = field(default_factory=set)
    on_connected: Callable[[Connected], None] = ignore_connection
    is_metering: bool = False
    """Whether all connections look at quotas, or are about to (``gateway.quotas.metering``)."""
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    times: RequestTimes = field(default_factory=RequestTimes)

    def __post_init__(self) -> None:
        settings = self.node.settings
        self.delays = FailureDelays(self.node.clock)
        self.held = HeldBytes(
            self.connections, self.node.clock, settings.queued_max_request_bytes, self.answers_max
        )
        self.idle = IdleConnections(self.connections, settings.max_connections)
        self.admission = Admission(self.node.clock, settings, self.quotas)
