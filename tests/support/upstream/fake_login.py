"""Gives the brokers of a fake cluster a login, by the server's own mechanisms of SASL."""

from __future__ import annotations

from typing import Any

from model.access.scram import ScramMechanism
from model.secret import Secret
from security.client.client_security import ClientSecurity
from security.endpoints import SecurityProtocol
from security.sasl.conversation import Authenticated, NotAuthenticated
from security.sasl.plain import Plain
from security.sasl.scram import Scram
from tests.support.security.scram import PASSWORD, find_secret, make_credentials
from tests.support.upstream.fake_broker import (
    API_VERSIONS,
    AUTHENTICATE,
    HANDSHAKE,
    Act,
    Asked,
    FakeBroker,
    FakeCluster,
)

USER = "muster"
FAILED, UNSUPPORTED_MECHANISM = 58, 33


def make_security(mechanism: str, password: str = PASSWORD) -> ClientSecurity:
    """Muster's own login."""
    return ClientSecurity(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        mechanism=mechanism,
        username=USER,
        password=Secret(password),
    )


class FakeLogin:
    """Wants a login on each connection, and closes those that ask for anything before it.

    ``logins`` are the connections that have logged in, again for each time;
    ``mechanisms`` may be changed.
    """

    def __init__(self, cluster: FakeCluster, lifetime_ms: int = 0) -> None:
        self.lifetime_ms = lifetime_ms
        self.logins: list[tuple[int, int]] = []
        self._talks: dict[tuple[int, int], Any] = {}
        credentials = make_credentials(USER)
        self.mechanisms: dict[str, Any] = {
            each.name: each
            for each in (
                Plain({USER: Secret(PASSWORD)}),
                Scram(ScramMechanism.SHA_256, credentials, find_secret),
                Scram(ScramMechanism.SHA_512, credentials, find_secret),
            )
        }
        cluster.answer(HANDSHAKE, self._shake_hands)
        cluster.answer(AUTHENTICATE, self._authenticate)
        for broker in cluster.brokers.values():
            self._guard(broker)

    def _guard(self, broker: FakeBroker) -> None:
        answer = broker._answer

        def guarded(asked: Asked) -> Any:
            is_before = asked.key in (API_VERSIONS, HANDSHAKE, AUTHENTICATE)
            return answer(asked) if is_before or _place(asked) in self.logins else Act.CLOSE

        broker._answer = guarded  # type: ignore[method-assign]

    def _shake_hands(self, asked: Asked) -> Any:
        mechanism = self.mechanisms.get(asked.request.mechanism)
        names = tuple(self.mechanisms)
        if mechanism is None:
            return {"error_code": UNSUPPORTED_MECHANISM, "mechanisms": names}
        self._talks[_place(asked)] = mechanism.begin(f"nonce{asked.correlation_id}")
        return {"mechanisms": names}

    def _authenticate(self, asked: Asked) -> Any:
        try:
            step = self._talks[_place(asked)].answer(asked.request.auth_bytes, 0.0)
        except NotAuthenticated as error:
            return {"error_code": FAILED, "error_message": error.message or "Not\nthis way"}
        if isinstance(step, Authenticated):
            self.logins.append(_place(asked))
        return {"auth_bytes": step.token, "session_lifetime": self.lifetime_ms}


def _place(asked: Asked) -> tuple[int, int]:
    return asked.broker.node_id, asked.connection
