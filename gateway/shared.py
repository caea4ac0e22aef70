"""What the connections of one server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.idle import IdleConnections

if TYPE_CHECKING:
    from gateway.api import GatewayNode
    from gateway.connection import Connection
    from gateway.headers import Routes
    from gateway.held_bytes import HeldBytes
    from gateway.refusals import Refusals
    from gateway.turns import Turns


@dataclass(slots=True)
class Shared:
    """What they share and change."""

    node: GatewayNode
    routes: Routes
    refusals: Refusals
    turns: Turns
    held: HeldBytes
    idle: IdleConnections = field(init=False)
    connections: set[Connection] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.idle = IdleConnections(self.connections, self.node.settings.max_connections)
