"""A connection whose TLS handshake is not finished yet.

Input is untrusted, and nobody has authenticated. Each step costs the server more than the client,
so steps take turns (``handshakes``), and their bytes and their time are bounded. An unfinished
handshake counts as a connection.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

from gateway.connection.peers import compute_java_host, describe_peer
from gateway.connection.sasl_connection import make_connection
from gateway.connection.shared import Shared
from gateway.tls.decryptions import Decryptions
from gateway.tls.handshakes import Handshakes
from gateway.tls.tls_failures import Failure, compute_failure, find_plain_protocol
from gateway.tls.tls_transport import TlsTransport
from gateway.wire_listener import WireListener
from security.identity import NOBODY, Identity
from security.tls.principals import PrincipalFault, compute_identity
from security.tls.server_contexts import TlsContext

HANDSHAKE_BYTES_MAX: Final = 64 * 1024
"""What a client may send before its handshake is finished; its certificates are in it."""
_LINGER_S: Final = 5.0
_MECHANISM: Final = "SSL"


class Handshake(asyncio.Protocol):
    """The asyncio protocol of an accepted socket until TLS is agreed on."""

    def __init__(
        self,
        shared: Shared,
        listener: WireListener,
        handshakes: Handshakes,
        decryptions: Decryptions,
    ) -> None:
        self._shared = shared
        self._listener = listener
        self._handshakes = handshakes
        self._decryptions = decryptions
        self.transport: asyncio.Transport | None = None
        self._peer = "?"
        self._began_at = 0.0
        self._arrived: list[bytes] = []
        self._arrived_bytes = 0
        self._total_bytes = 0
        self._tls: TlsContext | None = None
        self._channel: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()

    # ------------------------------------------------------------------------ asyncio callbacks

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        peername = transport.get_extra_info("peername")
        self._peer = describe_peer(peername)
        self._began_at = self._shared.node.clock.time()
        if not self._shared.idle.make_room(self._began_at):
            self.refuse("too-many-connections", "max.connections is reached")
            return
        host = compute_java_host(peername)
        refusal = self._shared.admission.admit(self, host, self._listener)
        if refusal is not None:
            self.refuse(*refusal)
            return
        self._shared.connections.add(self)
        self._handshakes.wait_for_client(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is not None and self._channel is not None:
            self._shared.refusals.refuse(
                "tls-abandoned", self._peer, "the client closed the connection in its handshake"
            )
        self._forget()

    def data_received(self, data: bytes) -> None:
        transport = self.transport
        if transport is None:
            return
        if not self._total_bytes and (other := find_plain_protocol(data)) is not None:
            self.refuse(*other)
            return
        self._total_bytes += len(data)
        if self._channel is None and self._total_bytes > HANDSHAKE_BYTES_MAX:
            self._refuse_size()
            return
        self._note_arrived([*self._arrived, data])
        transport.pause_reading()
        self._handshakes.wait_for_turn(self, is_begun=self._channel is not None)
        self._shared.held.check_requests(self._shared.node.clock.time())

    # -------------------------------------------------------------------------------- its steps

    def take_step(self) -> None:
        """Go on with what the client has sent."""
        transport = self.transport
        if transport is None:
            return
        channel = self._channel or self._begin()
        self._incoming.write(b"".join(self._arrived))
        self._note_arrived([])
        try:
            channel.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            if self._total_bytes > HANDSHAKE_BYTES_MAX:
                self._refuse_size()
                return
            transport.resume_reading()
            self._handshakes.wait_for_client(self)
        except ssl.SSLError as error:
            self._flush()
            self._fail(compute_failure(error))
        else:
            self._finish(channel)

    def _begin(self) -> ssl.SSLObject:
        contexts = self._listener.tls
        assert contexts is not None
        self._tls = contexts.current
        self._channel = self._tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        return self._channel

    def _finish(self, channel: ssl.SSLObject) -> None:
        """Hand the socket over to a connection of the client that the certificate names."""
        try:
            identity = self._compute_identity(channel)
        except PrincipalFault as fault:
            self._flush()
            self._fail(Failure("tls-principal", str(fault), is_of_client=True))
            return
        self._flush()
        raw = self.transport
        assert raw is not None
        connection = make_connection(self._shared, self._listener, identity)
        self._shared.admission.hand_over(self, connection)
        self._forget()
        transport = TlsTransport(
            raw,
            channel,
            self._incoming,
            self._outgoing,
            self._shared.node.clock,
            self._decryptions,
        )
        transport.begin(connection, self._incoming.read())

    def _compute_identity(self, channel: ssl.SSLObject) -> Identity:
        """The certificate's principal; clients of SASL say later who they are."""
        assert self._tls is not None
        if self._listener.endpoint.protocol.uses_sasl:
            return NOBODY
        return compute_identity(channel.getpeercert(binary_form=True), self._tls.rules)

    def _flush(self) -> None:
        if self._outgoing.pending and self.transport is not None:
            self.transport.write(self._outgoing.read())

    def _fail(self, failure: Failure) -> None:
        if failure.is_of_client and self.transport is not None:
            host = compute_java_host(self.transport.get_extra_info("peername"))
            name = self._listener.endpoint.name
            self._shared.audit.not_authenticated(host, name, _MECHANISM, failure.detail)
        self.refuse(failure.reason, failure.detail)

    def _refuse_size(self) -> None:
        self.refuse("tls-handshake-size", f"a handshake of more than {HANDSHAKE_BYTES_MAX} bytes")

    def _note_arrived(self, chunks: list[bytes]) -> None:
        """Set which bytes wait for a step; they count as those of requests."""
        self._arrived = chunks
        size = sum(map(len, chunks))
        self._shared.held.requests += size - self._arrived_bytes
        self._arrived_bytes = size

    def _forget(self) -> None:
        self.transport = None
        self._note_arrived([])
        self._handshakes.remove(self)
        self._shared.connections.discard(self)
        self._shared.admission.leave(self)

    # --------------------------------------------------------------------- as one of connections

    @property
    def is_parked(self) -> bool:
        return False

    @property
    def is_idle(self) -> bool:
        """Whether every request is answered: there is none."""
        return True

    def hold_back(self) -> None:
        """Read nothing until ``let_in``."""
        if self.transport is not None:
            self.transport.pause_reading()

    def let_in(self) -> None:
        """Read from now on."""
        if self.transport is not None:
            self.transport.resume_reading()

    def take_turn(self) -> None:
        """No request is deferred."""

    def drain(self) -> None:
        """The server stops: nobody is let in any more."""
        self.close()

    def check_deadlines(self, now: float) -> None:
        """Close the connection if its handshake takes too long."""
        allowed_s = self._shared.node.settings.gateway_tls_handshake_timeout_ms / 1_000
        if now - self._began_at > allowed_s:
            self.refuse("tls-handshake-timeout", f"no handshake within {allowed_s:g} s")

    def compute_idle_since(self) -> tuple[bool, float] | None:
        """As a client that never sent a byte of a request."""
        return False, self._began_at

    def weigh_request(self, now: float) -> float:
        """The bytes that wait for a step, more with their age."""
        return self._arrived_bytes * (1 + now - self._began_at)

    def measure_answers(self, now: float) -> float:
        """There is no answer."""
        return 0.0

    def drop(self) -> None:
        """Close: too many others are newer."""
        self.refuse("tls-handshakes", "gateway.tls.handshakes.max is reached by newer ones")

    def refuse(self, reason: str, detail: str) -> None:
        """Log a refusal and close."""
        self._shared.refusals.refuse(reason, self._peer, detail)
        self.close()

    def cut(self, reason: str, detail: str) -> None:
        """Log a refusal and close at once."""
        self._shared.refusals.refuse(reason, self._peer, detail)
        self.abort()

    def close(self) -> None:
        """Close; an alert that is written is sent first."""
        transport = self.transport
        if transport is None:
            return
        transport.close()
        if transport.get_write_buffer_size():
            self._shared.node.clock.call_later(_LINGER_S, transport.abort)
        self._forget()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()
            self._forget()
