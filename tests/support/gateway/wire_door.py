"""A connection without a socket: bytes in, frames out, over a fake coordinator and clock."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.loop.machine import compute_answers_max
from coordinator.runtime.loop.slices import Slices
from gateway.api import Api, GatewayNode
from gateway.apis.api_registry import APIS
from gateway.connection.connection_turns import Turns
from gateway.connection.refusals import Refusals
from gateway.connection.sasl_connection import make_connection
from gateway.connection.shared import Shared
from gateway.headers import Routes
from gateway.heartbeats.heartbeat_wire import encode_heartbeat_response
from gateway.heartbeats.heartbeats import Heartbeats
from gateway.settings import GatewaySettings
from gateway.wire_listener import WireListener, make_plain_listener
from security.quotas.client_quotas import ClientQuotas
from tests.support.gateway.fake_coordinator import FakeCoordinator, VirtualClock
from tests.support.wire.frames import frame, make_request, parse

_ADDRESSES = {"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 9_092)}


class FakeTransport:
    """A transport that records what is written; ``is_open`` until it is closed."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._addresses = {**_ADDRESSES, "peername": (host, 50_000)}
        self.written = b""
        self.is_open = True
        self.is_reading = True
        self.was_aborted = False
        self.unsent = 0
        self.socket: socket.socket | None = None
        """The socket, through which a hang-up is detected."""

    def get_extra_info(self, name: str) -> Any:
        return self.socket if name == "socket" else self._addresses[name]

    def set_write_buffer_limits(self, high: int) -> None:
        assert high > 0

    def write(self, data: bytes) -> None:
        assert self.is_open
        self.written += data

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.was_aborted = True

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent


PLAIN = make_plain_listener("127.0.0.1", 9_092)


class Gateway:
    """The state that the connections of a server share, without the server."""

    def __init__(
        self,
        settings: GatewaySettings | None = None,
        authorizer: Any = None,
        apis: tuple[Api, ...] = APIS,
        coordinator: Any = None,
        clock: Any = None,
        quotas: ClientQuotas | None = None,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.coordinator = coordinator or FakeCoordinator()
        settings = settings or GatewaySettings()
        authorizer = authorizer or AllowAll()
        coordinator = self.coordinator
        self.heartbeats = Heartbeats(
            coordinator, authorizer, settings, self.clock, encode_heartbeat_response
        )
        topics: Any = None
        node = GatewayNode(
            coordinator,
            authorizer,
            topics,
            settings,
            self.clock,
            self.heartbeats,
            Slices(
                lambda callback: self.clock.call_later(0, callback),
                lambda ms, callback: self.clock.call_later(ms / 1_000, callback),
                lambda: self.clock.time() * 1_000,
            ),
            apis,
            allows_all=isinstance(authorizer, AllowAll),
        )
        self.shared = Shared(
            node,
            Routes(apis, settings.gateway_array_elements_max),
            Refusals(self.clock.time),
            Turns(self.clock, self.clock.time),
            compute_answers_max(settings.gateway_response_total_bytes, 2**30),
            quotas=quotas if quotas is not None else ClientQuotas(),
        )

    def connect(self, listener: WireListener = PLAIN, host: str = "127.0.0.1") -> Door:
        return Door(self, listener, host)


class Door:
    """One connection."""

    def __init__(
        self, gateway: Gateway, listener: WireListener = PLAIN, host: str = "127.0.0.1"
    ) -> None:
        self.gateway = gateway
        self.transport = FakeTransport(host)
        self.connection = make_connection(gateway.shared, listener)
        self.connection.connection_made(self.transport)
        self._read = 0

    def send(self, data: bytes) -> None:
        self.connection.data_received(data)

    def request(self, key: int, version: int, correlation_id: int, /, **fields: Any) -> None:
        self.send(frame(key, version, correlation_id, make_request(key, version, **fields)))

    def frames(self) -> list[bytes]:
        """The frames written since the last call."""
        found = []
        data = self.transport.written
        while self._read < len(data):
            size = struct.unpack_from(">i", data, self._read)[0]
            found.append(data[self._read + 4 : self._read + 4 + size])
            self._read += 4 + size
        assert self._read == len(data), "half a frame was written"
        return found

    def answers(self, key: int, version: int) -> Sequence[tuple[int, Any]]:
        """(correlation id, entity) of the frames written since the last call."""
        return [parse(key, version, data) for data in self.frames()]

    def lose(self) -> None:
        """Close the client's end."""
        self.transport.close()
        self.connection.connection_lost(None)
