"""A connection of a listener whose clients authenticate by SASL.

A class of its own, so that connections of other listeners have none of its checks. Until the client
is known each frame is bounded by the limits for unknown clients, and one frame is taken per
event-loop iteration. Afterwards frames are served as on any connection, until the session ends.

What is kept for repeated requests was authorized for one principal and its groups: it is dropped if
these change. Requests in progress keep nothing afterwards: a commit is kept when it is submitted, a
heartbeat only for a member that the connection still knows.
"""

from __future__ import annotations

import logging
import struct
from functools import partial
from typing import Final

from gateway.connection.connection import Connection
from gateway.connection.shared import Shared
from gateway.headers import FIXED_BYTES
from gateway.sasl.exchange import AUTHENTICATE_KEY, HANDSHAKE_KEY
from gateway.sasl.logins import Login, TokenAnswer
from gateway.sasl.passed_on import make_exchange
from gateway.wire_listener import WireListener
from model.errors import ErrorCode
from security.identity import NOBODY, Identity

logger = logging.getLogger("muster.gateway")

_SIZE: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">h")


class RawAnswer:
    """The answer to a token that came without a request header (``gateway.pending.Pending``)."""

    began_s = 0.0
    key = AUTHENTICATE_KEY

    def __init__(self) -> None:
        self.answered = False
        self.frame = b""

    def abandon(self) -> None:
        """Nothing waits for it."""


class SaslConnection(Connection):
    """The asyncio protocol of one accepted connection."""

    # More than 15 attributes, as its base class.

    def __init__(self, shared: Shared, listener: WireListener, identity: Identity = NOBODY) -> None:
        super().__init__(shared, listener, identity)
        assert listener.sasl is not None
        self._exchange = make_exchange(listener.sasl, self, shared.node.clock, shared.delays)
        self.sasl = self._exchange
        unknown_max = self._settings.gateway_unauthenticated_request_max_bytes
        self._unknown_max = min(unknown_max, listener.sasl.max_receive_size)
        self._repeats_until = 0.0

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._exchange.drop()
        self.sasl = None

    # ------------------------------------------------------------------ before the client is known

    def _serve_frames(self, data: bytes, pos: int, out: list[bytes]) -> int:
        exchange = self._exchange
        size = len(data)
        if exchange.is_done:
            return super()._serve_frames(data, pos, out)
        if exchange.is_waiting:
            self._is_held = True
            return pos
        if size - pos < 4:
            return pos
        length: int = _SIZE.unpack_from(data, pos)[0]
        if not self._check_unknown(length):
            return size
        end = pos + 4 + length
        if end > size:
            return pos
        if not self._serve_unknown(data, pos + 4, end):
            return size if self.transport is None else pos
        self._is_held |= end < size or exchange.is_waiting
        return end

    def _check_unknown(self, length: int) -> bool:
        """Whether a client may send a frame of this length before it is known."""
        if 0 <= length <= self._unknown_max:
            return True
        own_max = self._exchange.max_receive_size
        name = "gateway.unauthenticated.request.max.bytes"
        name = "sasl.server.max.receive.size" if own_max == self._unknown_max else name
        fault = (
            f"the frame length {length} before authentication exceeds {name}={self._unknown_max}"
        )
        self.refuse("frame-length", fault)
        return False

    def _serve_unknown(self, data: bytes, pos: int, end: int) -> bool:
        """Take one frame; ``False`` if it must wait or nothing follows."""
        exchange = self._exchange
        if exchange.is_raw:
            answer = RawAnswer()
            self.unanswered.append(answer)
            exchange.authenticate(data[pos:end], partial(self._answer_raw, answer))
            return True
        if end - pos < FIXED_BYTES:
            self.refuse("frame-length", "a frame is shorter than a request header")
            return False
        key = _KEY.unpack_from(data, pos)[0]
        if not exchange.admits(key):
            detail = f"API key {key} before the client has authenticated"
            self.note_failure("", detail)
            self.refuse("not-authenticated", detail)
            return False
        return super()._serve_request(data, pos, end)

    def _answer_raw(self, answer: RawAnswer, made: TokenAnswer) -> None:
        if made.code is ErrorCode.NONE:
            answer.frame = _SIZE.pack(len(made.token)) + made.token
        answer.answered = True
        self.send_answered()

    def _may_go_on(self) -> bool:
        return not self._exchange.is_waiting and super()._may_go_on()

    def check_deadlines(self, now: float) -> None:
        super().check_deadlines(now)
        if self.transport is not None:
            self._exchange.check_deadline(now)

    # ---------------------------------------------------------------- while the client is known

    def _serve_repeated(self, frame: bytes) -> bool:
        return self._time() < self._repeats_until and super()._serve_repeated(frame)

    def _serve_request(self, data: bytes, pos: int, end: int) -> bool:
        exchange = self._exchange
        is_over = self._time() > exchange.expires_at
        if is_over and _KEY.unpack_from(data, pos)[0] != HANDSHAKE_KEY:
            self.refuse("session-expired", "the client did not authenticate again in time")
            return False
        if not super()._serve_request(data, pos, end):
            return False
        if is_over and exchange.is_done:
            self.refuse("session-expired", "the client authenticates again too often")
            return False
        return True

    # --------------------------------------------------------------- what the exchange asks for

    def take_identity(self, identity: Identity) -> None:
        """Serve requests from now on, as those of this client (``gateway.sasl.exchange``)."""
        before, self._identity = self._identity, identity
        self._repeats_until = self._exchange.expires_at
        if (before.principal, before.groups) == (identity.principal, identity.groups):
            return
        self.repeats.clear()
        self._node.heartbeats.forget_all(self.heartbeats)
        # The next header is compared with none, and read: a caller is made of it.
        self._plain_header = self._tagged_header = None
        self._caller = self._compute_caller("")

    def take_login(self, login: Login) -> None:
        """Pass requests on over this (``gateway.fronting.front.PassedClient``)."""
        self.passed = login

    def begin_again(self) -> None:
        """Serve no requests until the client has authenticated again."""
        self._repeats_until = 0.0
        self._is_held = True

    def go_on(self) -> None:
        """Serve what has arrived while the exchange was waiting."""
        if self._is_held:
            self._ask_for_a_turn()

    def note_failure(self, mechanism: str, reason: str) -> None:
        """Count and log that the client was refused; it is closed later."""
        detail = f"{mechanism}: {reason}" if mechanism else reason
        self._shared.refusals.refuse("authentication-failed", self._peer, detail)
        name = self._listener.endpoint.name
        self._shared.audit.not_authenticated(self._host, name, mechanism, reason)


def make_connection(
    shared: Shared, listener: WireListener, identity: Identity = NOBODY
) -> Connection:
    """A connection of the listener; ``identity``: who its transport has shown the client to be."""
    kind = Connection if listener.sasl is None else SaslConnection
    return kind(shared, listener, identity)
