"""Logins at a cluster that is not there: a broker's verifier without a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.sasl.logins import HandshakeAnswer, OnHandshake, OnToken, TokenAnswer
from model.errors import ErrorCode
from security.sasl.claimed_names import make_name_readers
from security.sasl.conversation import Authenticated, Conversation, NotAuthenticated
from tests.support.security.sasl_door import SaslDoor, SaslGateway, make_mechanisms
from tests.support.security.tokens import NOW_S


class ClusterLogin:
    """One client's connection to the broker."""

    def __init__(self, cluster: ClusterLogins) -> None:
        self.cluster = cluster
        self.heard: list[str | bytes] = []
        self.conversation: Conversation | None = None
        self.is_closed = False
        self.is_settled = False
        self.is_taken = False
        self.sent: list[bytes] = []

    def shake_hands(self, mechanism: str, reply: OnHandshake) -> None:
        self.heard.append(mechanism)
        self.cluster.answer_later(lambda: reply(self._shake_hands(mechanism)), reply)

    def _shake_hands(self, mechanism: str) -> HandshakeAnswer:
        offered = self.cluster.mechanisms
        found = offered.get(mechanism)
        self.conversation = None if found is None else found.begin("fyko+d2lbbFgONRv9qkxdawL")
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM if found is None else ErrorCode.NONE
        return HandshakeAnswer(code, (*offered, *self.cluster.more))

    def authenticate(self, token: bytes, reply: OnToken) -> None:
        self.heard.append(token)
        self.cluster.answer_later(lambda: reply(self._authenticate(token)), reply)

    def _authenticate(self, token: bytes) -> TokenAnswer:
        assert self.conversation is not None
        try:
            step = self.conversation.answer(token, NOW_S)
        except NotAuthenticated as error:
            return TokenAnswer(ErrorCode.SASL_AUTHENTICATION_FAILED, f"the broker: {error.reason}")
        lifetime_ms = self.cluster.lifetime_ms if isinstance(step, Authenticated) else 0
        return TokenAnswer(ErrorCode.NONE, None, step.token, lifetime_ms)

    def settle(self) -> None:
        self.is_settled = True

    def send(self, frame: bytes) -> None:
        self.is_taken = True
        self.sent.append(frame)

    async def read_frame(self) -> bytes | None:
        raise AssertionError

    def close(self) -> None:
        self.is_closed = True


class ClusterLogins:
    """All connections. It answers in later turns, or not before ``come`` if ``is_slow``."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any] | None = None) -> None:
        self.opened: list[ClusterLogin] = []
        self.mechanisms = make_mechanisms()
        self.more: tuple[str, ...] = ()
        self.lifetime_ms = 0
        self.is_slow = False
        self.is_gone = False
        self.waiting: list[Callable[[], None]] = []
        self.call_soon = call_soon

    def open(self) -> ClusterLogin:
        self.opened.append(ClusterLogin(self))
        return self.opened[-1]

    def answer_later(self, answer: Callable[[], None], reply: Callable[[None], None]) -> None:
        done = (lambda: reply(None)) if self.is_gone else answer
        if self.is_slow:
            self.waiting.append(done)
        else:
            assert self.call_soon is not None
            self.call_soon(done)

    def come(self) -> None:
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done()


class FrontGateway(SaslGateway):
    """A listener whose clients log in at the cluster."""

    def __init__(self, **changes: Any) -> None:
        self.logins = ClusterLogins()
        super().__init__(mechanisms={}, logins=self.logins, readers=make_name_readers(), **changes)
        self.logins.call_soon = lambda done: self.clock.call_later(0, done)

    def open(self) -> SaslDoor:
        return SaslDoor(self, self.listener)
