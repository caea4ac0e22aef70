"""One client's way from a handshake to an identity, and again before its session ends.

The stages are those of Kafka's broker: ApiVersions once, a handshake that names a mechanism, then
tokens until the client is known or refused. After a handshake of version 0 the tokens come without
a request header. A session with an end is renewed by another handshake (KIP-368), with the same
mechanism and as the same principal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final, Protocol, TypeAlias, assert_never

from gateway.sasl.failure_delays import FailureDelays
from gateway.sasl.logins import Login, TokenAnswer
from gateway.sasl.sasl_listener import SaslListener
from gateway.wire_clock import Clock
from model.errors import ErrorCode
from security.identity import Identity
from security.sasl.conversation import (
    Authenticated,
    Challenge,
    Conversation,
    NotAuthenticated,
    UnknownKey,
)

API_VERSIONS_KEY: Final = 18
HANDSHAKE_KEY: Final = 17
AUTHENTICATE_KEY: Final = 36
_REAUTH_INTERVAL_S: Final = 1.0
"""A client may renew its session once in this time, as in Kafka."""


class Stage(Enum):
    """How far a client has come."""

    START = "START"
    GREETED = "GREETED"
    TOKENS = "TOKENS"
    WRONG_MECHANISM = "WRONG_MECHANISM"
    DONE = "DONE"
    REFUSED = "REFUSED"


TokenReply: TypeAlias = Callable[[TokenAnswer], None]
HandshakeReply: TypeAlias = Callable[[ErrorCode], None]


class SaslDoor(Protocol):
    """The connection of an exchange."""

    def take_identity(self, identity: Identity) -> None:
        """Serve requests from now on, as those of this client."""

    def take_login(self, login: Login) -> None:
        """Pass requests on over the connection of this client's login."""

    def begin_again(self) -> None:
        """Serve no requests until the client has authenticated again."""

    def go_on(self) -> None:
        """Serve what has arrived while the exchange was waiting."""

    def note_failure(self, mechanism: str, reason: str) -> None:
        """Count and log that the client was refused; it is closed later."""

    def refuse(self, reason: str, detail: str) -> None:
        """Log a refusal and close."""

    def close(self) -> None:
        """Close once the written responses are sent."""


class SaslExchange:
    """The authentication of one connection."""

    __slots__ = (
        "_began_at",
        "_clock",
        "_conversation",
        "_delays",
        "_door",
        "_listener",
        "_mechanism",
        "_previous",
        "_renewed_at",
        "expires_at",
        "is_raw",
        "is_waiting",
        "stage",
    )

    def __init__(
        self, listener: SaslListener, door: SaslDoor, clock: Clock, delays: FailureDelays
    ) -> None:
        self._listener = listener
        self._door: SaslDoor | None = door
        self._clock = clock
        self._delays = delays
        self._conversation: Conversation | None = None
        self._mechanism = ""
        self._previous: Identity | None = None
        self._renewed_at = -math.inf
        self._began_at = clock.time()
        self.stage = Stage.START
        self.is_raw = False
        """Whether tokens come without a request header."""
        self.is_waiting = False
        """Whether nothing more is taken from the client: it is refused, or keys are looked for."""
        self.expires_at = math.inf
        """When the session ends, in seconds of the clock."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The names of the enabled mechanisms."""
        return tuple(self._listener.mechanisms)

    @property
    def max_receive_size(self) -> int:
        """The maximum size of what the client sends before it is known."""
        return self._listener.max_receive_size

    @property
    def is_done(self) -> bool:
        """Whether the client has authenticated, and is not doing so again."""
        return self.stage is Stage.DONE

    def admits(self, key: int) -> bool:
        """Whether a request of this API may be decoded before the client has authenticated."""
        match self.stage:
            case Stage.START:
                return key in (API_VERSIONS_KEY, HANDSHAKE_KEY)
            case Stage.GREETED:
                return key == HANDSHAKE_KEY
            case Stage.TOKENS | Stage.WRONG_MECHANISM:
                return key in (HANDSHAKE_KEY, AUTHENTICATE_KEY)
            case Stage.DONE:
                return True
            case Stage.REFUSED:
                return False
            case _:
                assert_never(self.stage)

    def check_deadline(self, now: float) -> None:
        """Close the connection if the client takes too long to authenticate."""
        allowed_s = self._listener.timeout_ms / 1_000
        is_over = self.stage in (Stage.DONE, Stage.REFUSED)
        if self._door is not None and not is_over and now - self._began_at > allowed_s:
            detail = f"the client did not authenticate within {allowed_s:g} s"
            self._door.refuse("authentication-timeout", detail)

    def drop(self) -> None:
        """Forget the connection, which is gone: each refers to the other."""
        self._door = None
        self._conversation = None

    def note_greeting(self) -> None:
        """Note that ApiVersions was answered."""
        if self.stage is Stage.START:
            self.stage = Stage.GREETED

    # -------------------------------------------------------------------------- the handshake

    def shake_hands(self, mechanism: str, *, is_raw: bool, reply: HandshakeReply) -> None:
        """Take a handshake and reply to it, later if it is refused."""
        if self.stage is Stage.DONE:
            if not self._begin_again():
                reply(ErrorCode.ILLEGAL_SASL_STATE)
                return
        elif self.stage not in (Stage.START, Stage.GREETED):
            told = partial(reply, ErrorCode.ILLEGAL_SASL_STATE)
            self._refuse("a handshake in place of a token", told)
            return
        self._choose(mechanism, is_raw, reply)

    def _choose(self, mechanism: str, is_raw: bool, reply: HandshakeReply) -> None:
        """Take the mechanism of a handshake that is due."""
        found = self._listener.mechanisms.get(mechanism)
        if found is None:
            self._refuse_mechanism(reply)
        elif self._is_other(mechanism):
            self._take_wrong(is_raw, reply)
        else:
            self._conversation = found.begin(self._listener.make_nonce())
            self._take_mechanism(mechanism, is_raw, reply)

    def _is_other(self, mechanism: str) -> bool:
        """Whether a client that authenticates again names another mechanism than before."""
        return self._previous is not None and mechanism != self._mechanism

    def _take_mechanism(self, mechanism: str, is_raw: bool, reply: HandshakeReply) -> None:
        self.is_raw = is_raw
        self.stage = Stage.TOKENS
        self._mechanism = mechanism
        reply(ErrorCode.NONE)

    def _take_wrong(self, is_raw: bool, reply: HandshakeReply) -> None:
        """As in Kafka the client is refused at its token."""
        self.is_raw = is_raw
        self.stage = Stage.WRONG_MECHANISM
        reply(ErrorCode.NONE)

    def _refuse_mechanism(self, reply: HandshakeReply) -> None:
        told = partial(reply, ErrorCode.UNSUPPORTED_SASL_MECHANISM)
        self._refuse("the mechanism is not enabled", told)

    def _begin_again(self) -> bool:
        """Whether the client may authenticate again now; then its requests are not served."""
        now = self._clock.time()
        is_soon = now - self._renewed_at < _REAUTH_INTERVAL_S
        if self._door is None or self.expires_at == math.inf or is_soon:
            return False
        self._renewed_at = self._began_at = now
        self._door.begin_again()
        return True

    # -------------------------------------------------------------------------------- tokens

    def authenticate(self, token: bytes, reply: TokenReply) -> None:
        """Take a token and reply to it, later if it is refused or keys have to be looked for."""
        if self.stage is Stage.WRONG_MECHANISM:
            self._refuse("another mechanism than before", lambda: None)
            return
        if self.stage is not Stage.TOKENS:
            self._refuse("a token in place of a handshake", lambda: None)
            return
        self._answer(token, reply, may_refresh=True)

    def _answer(self, token: bytes, reply: TokenReply, *, may_refresh: bool) -> None:
        assert self._conversation is not None
        keys = self._listener.keys
        try:
            step = self._conversation.answer(token, self._listener.now_s())
        except UnknownKey as error:
            if keys is None or not may_refresh:
                self._refuse_token(error, reply)
                return
            self.is_waiting = True
            keys.refresh(partial(self._answer_again, token, reply))
            return
        except NotAuthenticated as error:
            self._refuse_token(error, reply)
            return
        match step:
            case Challenge():
                reply(TokenAnswer(ErrorCode.NONE, token=step.token))
            case Authenticated():
                self._finish(step, reply)
            case _:
                assert_never(step)

    def _answer_again(self, token: bytes, reply: TokenReply) -> None:
        """Answer a token whose key was unknown, now that there may be newer keys."""
        if self._door is None or self.stage is not Stage.TOKENS:
            return
        self.is_waiting = False
        self._answer(token, reply, may_refresh=False)
        if not self.is_waiting:
            self._door.go_on()

    def _finish(self, step: Authenticated, reply: TokenReply) -> None:
        identity, previous = step.identity, self._previous
        if previous is not None and previous.principal != identity.principal:
            was, now = (each.principal.replace(":", ".", 1) for each in (previous, identity))
            message = f"Cannot change principals during re-authentication from {was}: {now}"
            self._refuse_token(NotAuthenticated("another principal than before", message), reply)
            return
        lifetime_ms = self._compute_lifetime_ms(identity)
        self.expires_at = math.inf
        if lifetime_ms is not None:
            self.expires_at = self._clock.time() + lifetime_ms / 1_000
        self._previous = identity
        self._conversation = None
        self.stage = Stage.DONE
        assert self._door is not None
        self._door.take_identity(identity)
        reply(TokenAnswer(ErrorCode.NONE, None, step.token, lifetime_ms or 0))

    def _compute_lifetime_ms(self, identity: Identity) -> int | None:
        """How long the session may last; ``None`` without a limit."""
        ends = []
        if reauth_ms := self._listener.reauth_ms.get(self._mechanism, 0):
            ends.append(reauth_ms)
        if identity.expires_at_ms is not None:
            ends.append(identity.expires_at_ms - int(self._listener.now_s() * 1_000))
        return max(0, min(ends)) if ends else None

    # -------------------------------------------------------------------------------- refusals

    def _refuse_token(self, error: NotAuthenticated, reply: TokenReply) -> None:
        what = "authentication" if self._previous is None else "re-authentication"
        message = error.message or (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )
        answer = TokenAnswer(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
        self._refuse(error.reason, partial(reply, answer))

    def _refuse(self, reason: str, tell: Callable[[], None]) -> None:
        """Tell the client after the delay, and close."""
        self.stage = Stage.REFUSED
        self.is_waiting = True
        self._conversation = None
        if self._door is not None:
            self._door.note_failure(self._mechanism, reason)
        self._delays.add(self._listener.failure_delay_ms, partial(self._end, tell))

    def _end(self, tell: Callable[[], None]) -> None:
        if self._door is not None:
            tell()
            self._door.close()
