"""A connection over TLS without a socket: a client's OpenSSL on one side, the gateway's on the
other, and between them bytes that the test cuts, holds back or invents."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.tls.decryptions import Decryptions
from gateway.tls.handshake import Handshake
from gateway.tls.handshakes import Handshakes
from gateway.wire_listener import WireListener
from security.endpoints import Endpoint, SecurityProtocol
from security.tls.server_contexts import TlsContexts, load_tls
from security.tls.tls_settings import TlsSettings
from tests.support.gateway.wire_door import Gateway

_ADDRESSES = {"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 9_092), "socket": None}


class FakeSocket:
    """The socket's transport: what is written arrives in ``sent``, unless it is full."""

    def __init__(self) -> None:
        self.protocol: Any = None
        self.sent = b""
        self.unsent = b""
        self.is_full = False
        self.is_paused = False
        self.was_aborted = False
        self.is_open = True
        self.high = 64 * 1024
        self.most_unsent = 0
        self._told_full = False

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return _ADDRESSES[name]

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def write(self, data: bytes) -> None:
        assert self.is_open
        if not self.is_full:
            self.sent += data
            return
        self.unsent += data
        self.most_unsent = max(self.most_unsent, len(self.unsent))
        if len(self.unsent) > self.high and not self._told_full:
            self._told_full = True
            self.protocol.pause_writing()

    def take(self, size: int) -> None:
        """The client reads so many bytes of those that wait."""
        self.sent += self.unsent[:size]
        self.unsent = self.unsent[size:]
        if self._told_full and len(self.unsent) <= self.high // 4:
            self._told_full = False
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_reading(self) -> bool:
        return not self.is_paused and self.is_open

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.was_aborted = True
        self.is_open = False
        self.unsent = b""


class TlsGateway:
    """A listener with TLS of a ``Gateway``, and what its connections share."""

    def __init__(
        self,
        gateway: Gateway,
        settings: TlsSettings,
        *,
        handshakes_max: int = 100,
        now: Callable[[], float] | None = None,
        protocol: SecurityProtocol = SecurityProtocol.SSL,
    ) -> None:
        clock = gateway.clock
        self.gateway = gateway
        self.contexts = TlsContexts(load_tls(settings))
        endpoint = Endpoint(protocol.value, protocol, "127.0.0.1", 9_093)
        self.listener = WireListener(endpoint, self.contexts)
        self.handshakes = Handshakes(clock, now or clock.time, handshakes_max)
        self.decryptions = Decryptions(clock, now or clock.time)

    def connect(self, context: ssl.SSLContext) -> TlsDoor:
        return TlsDoor(self, context)


class TlsDoor:
    """One connection, and its client."""

    def __init__(self, tls: TlsGateway, context: ssl.SSLContext) -> None:
        self.clock = tls.gateway.clock
        self.shared = tls.gateway.shared
        self.socket = FakeSocket()
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.handshake = Handshake(
            tls.gateway.shared, tls.listener, tls.handshakes, tls.decryptions
        )
        self.socket.protocol = self.handshake
        self.handshake.connection_made(self.socket)
        self._taken = 0
        self._plain = b""

    def deliver(self, data: bytes, size: int = 1 << 20) -> None:
        """The socket receives these bytes, in pieces of ``size``; none while it is paused."""
        for start in range(0, len(data), size):
            self.turn_until(lambda: not self.socket.is_paused)
            if not self.socket.is_open:
                return
            self.socket.protocol.data_received(data[start : start + size])
        self.turn()

    def turn(self) -> None:
        """Iterations of the event loop, until nothing is due."""
        while self.clock.turn():
            pass

    def turn_until(self, condition: Callable[[], bool]) -> None:
        while not condition() and self.clock.turn():
            pass

    def flow(self) -> None:
        """What the gateway has sent reaches the client's OpenSSL."""
        data = self.socket.sent[self._taken :]
        self._taken += len(data)
        if data:
            self.incoming.write(data)

    def shake(self, size: int = 1 << 20) -> None:
        """The whole handshake, the client's bytes in pieces. Raises ``ssl.SSLError``."""
        while True:
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                done = False
            else:
                done = True
            sent = self.outgoing.read()
            if sent:
                self.deliver(sent, size)
            before = self._taken
            self.flow()
            if done:
                return
            if not sent and before == self._taken:
                raise ConnectionError("the handshake does not go on")

    def hello(self) -> bytes:
        """The client's first bytes."""
        try:
            self.client.do_handshake()
        except ssl.SSLWantReadError:
            return self.outgoing.read()
        raise AssertionError

    def encrypt(self, data: bytes) -> bytes:
        self.client.write(data)
        return self.outgoing.read()

    def send(self, data: bytes, size: int = 1 << 20) -> None:
        self.deliver(self.encrypt(data), size)

    def receive(self) -> bytes:
        """What the gateway has sent since the last call, decrypted.

        Raises ``ssl.SSLZeroReturnError`` never: the end is an empty answer, see ``is_ended``.
        """
        self.flow()
        found = b""
        try:
            while chunk := self.client.read(1 << 16):
                found += chunk
        except ssl.SSLWantReadError:
            pass
        return found

    @property
    def is_ended(self) -> bool:
        """Whether the gateway has sent close_notify."""
        self.flow()
        try:
            return self.client.read(1) == b""
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLZeroReturnError:
            return True

    def frames(self) -> list[bytes]:
        self._plain += self.receive()
        found, position = [], 0
        while position < len(self._plain):
            size = struct.unpack_from(">i", self._plain, position)[0]
            found.append(self._plain[position + 4 : position + 4 + size])
            position += 4 + size
        self._plain = b""
        return found


def make_client_context(authority: Path, own: Path | None = None) -> ssl.SSLContext:
    """A client that knows the authority, with a certificate of its own or without."""
    context = ssl.create_default_context(cafile=str(authority))
    if own is not None:
        context.load_cert_chain(own)
    return context
