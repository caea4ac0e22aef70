"""An exchange whose messages are passed on to the cluster, which verifies the client.

Muster takes the cluster's yes or no, and the client's name from the client's own messages. If the
cluster cannot be reached the client is closed, as by a broker that goes away: it tries again, while
a refusal would end it. A mechanism whose messages show no name is not offered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from gateway.sasl.exchange import (
    HandshakeReply,
    SaslDoor,
    SaslExchange,
    Stage,
    TokenReply,
)
from gateway.sasl.failure_delays import FailureDelays
from gateway.sasl.logins import HandshakeAnswer, Login, Logins, TokenAnswer
from gateway.sasl.sasl_listener import SaslListener
from gateway.wire_clock import Clock
from model.errors import ErrorCode
from security.identity import Identity
from security.sasl.conversation import Authenticated, NotAuthenticated

_MESSAGES_MAX: Final = 2
"""So many tokens a client sends at most; each mechanism is over then."""


class PassedExchange(SaslExchange):
    """The authentication of one connection at the cluster."""

    # More than 15 attributes with those of its base class, which has the states of a client.

    __slots__ = (
        "_identity",
        "_known",
        "_lifetime_ms",
        "_login",
        "_logins",
        "_messages",
        "_offered",
    )

    def __init__(
        self,
        listener: SaslListener,
        door: SaslDoor,
        clock: Clock,
        delays: FailureDelays,
        logins: Logins,
    ) -> None:
        super().__init__(listener, door, clock, delays)
        self._logins = logins
        self._offered: tuple[str, ...] = ()
        self._messages = 0
        self._identity: Identity | None = None
        self._lifetime_ms = 0
        self._login: Login | None = None
        self._known: Login | None = None
        """The last login that was right."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that the cluster offers and whose messages show a name."""
        return self._offered

    def drop(self) -> None:
        super().drop()
        self._close_login()
        if self._known is not None:
            self._known.close()
            self._known = None

    def _close_login(self) -> None:
        login, self._login = self._login, None
        if login is not None:
            login.close()

    # -------------------------------------------------------------------------- the handshake

    def _choose(self, mechanism: str, is_raw: bool, reply: HandshakeReply) -> None:
        if self._is_other(mechanism):
            self._take_wrong(is_raw, reply)
            return
        # Not DONE: a client that authenticates again is not served meanwhile.
        self.stage = Stage.GREETED
        self.is_waiting = True
        # Also to authenticate again: a broker may have closed the connection since, for being idle,
        # and on it there may be requests that are not answered yet.
        self._login = self._logins.open()
        self._login.shake_hands(mechanism, partial(self._on_handshake, mechanism, is_raw, reply))

    def _on_handshake(
        self, mechanism: str, is_raw: bool, reply: HandshakeReply, answer: HandshakeAnswer | None
    ) -> None:
        if not self._goes_on(answer):
            return
        assert answer is not None
        readers = self._listener.readers
        self._offered = tuple(each for each in answer.mechanisms if each in readers)
        if answer.code is ErrorCode.NONE and mechanism in readers:
            self._messages = 0
            self._take_mechanism(mechanism, is_raw, reply)
        elif answer.code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_SASL_MECHANISM):
            self._refuse_mechanism(reply)
        else:
            self._refuse("the cluster refuses the handshake", partial(reply, answer.code))
        self._serve_on()

    def _goes_on(self, answer: object) -> bool:
        """Whether the client is still there, and the cluster too."""
        if self._door is None:
            return False
        self.is_waiting = False
        if answer is None:
            self._door.refuse("cluster-unreachable", "the cluster did not answer a login")
            return False
        return True

    def _serve_on(self) -> None:
        if self._door is not None and not self.is_waiting:
            self._door.go_on()

    # -------------------------------------------------------------------------------- tokens

    def _answer(self, token: bytes, reply: TokenReply, *, may_refresh: bool) -> None:
        assert self._login is not None
        self._messages += 1
        if self._messages == 1:
            try:
                self._identity = self._listener.readers[self._mechanism].read(token)
            except NotAuthenticated as error:
                self._refuse_token(error, reply)
                return
        self.is_waiting = True
        self._login.authenticate(token, partial(self._on_token, reply))

    def _on_token(self, reply: TokenReply, answer: TokenAnswer | None) -> None:
        if not self._goes_on(answer):
            return
        assert answer is not None
        if answer.code is not ErrorCode.NONE:
            self._refuse("refused by the cluster", partial(reply, answer))
        elif self._listener.readers[self._mechanism].is_last(self._messages, answer.token):
            self._lifetime_ms = answer.session_lifetime_ms
            assert self._identity is not None
            self._finish(Authenticated(self._identity, answer.token), reply)
        elif self._messages < _MESSAGES_MAX:
            reply(answer)
        else:
            # Neither yes nor no: nobody is let in by what is not understood.
            self._refuse_token(NotAuthenticated("the cluster's answer is not understood"), reply)
        self._serve_on()

    def _finish(self, step: Authenticated, reply: TokenReply) -> None:
        login, before = self._login, self._known
        assert login is not None
        super()._finish(step, reply)
        if not self.is_done or self._door is None:
            return
        self._login, self._known = None, login
        login.settle()
        self._door.take_login(login)
        if before is not None and not before.is_taken:
            before.close()

    def _compute_lifetime_ms(self, identity: Identity) -> int | None:
        """As long as the cluster says, and no longer than the token.

        A broker says 0 for no end, and also for a token that has just expired.
        """
        ends = (self._lifetime_ms or None, super()._compute_lifetime_ms(identity))
        return min((each for each in ends if each is not None), default=None)

    def _end(self, tell: Callable[[], None]) -> None:
        super()._end(tell)
        self._close_login()


def make_exchange(
    listener: SaslListener, door: SaslDoor, clock: Clock, delays: FailureDelays
) -> SaslExchange:
    """How the clients of a listener authenticate."""
    if listener.logins is None:
        return SaslExchange(listener, door, clock, delays)
    return PassedExchange(listener, door, clock, delays, listener.logins)
