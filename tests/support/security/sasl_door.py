"""A connection of a listener with SASL, without a socket, and a client's steps on it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gateway.sasl.sasl_listener import SaslListener
from gateway.settings import GatewaySettings
from gateway.wire_listener import WireListener
from model.access.acls import Operation, ResourceType
from model.access.scram import ScramMechanism
from model.caller import Caller
from model.secret import Secret
from security.endpoints import Endpoint, SecurityProtocol
from security.sasl.conversation import Mechanism
from security.sasl.oauthbearer import OauthBearer
from security.sasl.plain import Plain
from security.sasl.scram import Scram
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.security.scram import PASSWORD, find_secret, make_client, make_credentials
from tests.support.security.tokens import NOW_S, verifier
from tests.support.wire.frames import parse

HANDSHAKE, VERSIONS, AUTHENTICATE, LIST, HEARTBEAT = 17, 18, 36, 16, 68
NONE, UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 0, 33, 34, 58
DELAY_S = 0.1


class Keys:
    """Where newer keys of tokens come from, when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def refresh(self, done: Callable[[], None]) -> None:
        self.waiting.append(done)

    def come(self) -> None:
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done()


class Told:
    """An audit that keeps what it is told."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, str, str, str]] = []

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None:
        self.failures.append((host, listener, mechanism, reason))

    def refused(self, caller: Caller, operation: Operation, kind: ResourceType, name: str) -> None:
        raise AssertionError

    def changed(
        self,
        caller: Caller,
        change: str,
        before: Mapping[str, object] | None,
        after: Mapping[str, object] | None,
    ) -> None:
        raise AssertionError


def make_mechanisms(**more: Mechanism) -> dict[str, Mechanism]:
    credentials = make_credentials("alice", "bob")
    found: tuple[Mechanism, ...] = (
        Plain({"alice": Secret(PASSWORD), "bob": Secret(PASSWORD)}),
        Scram(ScramMechanism.SHA_256, credentials, find_secret),
        Scram(ScramMechanism.SHA_512, credentials, find_secret),
        OauthBearer(verifier()),
    )
    return {each.name: each for each in found} | more


def plain(user: str = "alice", password: str = PASSWORD) -> bytes:
    return f"\0{user}\0{password}".encode()


def bearer(token: str) -> bytes:
    return f"n,,\1auth=Bearer {token}\1\1".encode()


class SaslGateway(Gateway):
    """The connections of one listener with SASL; the wall clock goes with the virtual one."""

    def __init__(
        self,
        settings: GatewaySettings | None = None,
        mechanisms: dict[str, Mechanism] | None = None,
        **changes: Any,
    ) -> None:
        names = ("apis", "authorizer", "quotas")
        passed_on = {name: changes.pop(name) for name in names if name in changes}
        super().__init__(settings, **passed_on)
        self.told = Told()
        self.shared.audit = self.told
        began = self.clock.time()
        listener = SaslListener(
            make_mechanisms() if mechanisms is None else mechanisms,
            failure_delay_ms=round(DELAY_S * 1_000),
            now_s=lambda: NOW_S + self.clock.time() - began,
        )
        endpoint = Endpoint("SASL", SecurityProtocol.SASL_PLAINTEXT, "127.0.0.1", 9_092)
        self.listener = WireListener(endpoint, sasl=replace(listener, **changes))

    def open(self) -> SaslDoor:
        return SaslDoor(self, self.listener)

    @property
    def refusals(self) -> dict[str, int]:
        return self.shared.refusals.counts


class SaslDoor(Door):
    """One connection, and what a client does on it."""

    def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """The one answer to a request, after the turn that it may take."""
        self.request(key, version, 7, **fields)
        self.turn()
        [(correlation, answer)] = self.answers(key, version)
        assert correlation == 7
        return answer

    def turn(self) -> None:
        """Let what was put off to later iterations happen."""
        while self.gateway.clock.turn():
            pass

    def pass_delay(self) -> None:
        self.gateway.clock.advance(DELAY_S)

    def shake_hands(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(HANDSHAKE, version, mechanism=mechanism)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        return self.ask(AUTHENTICATE, version, auth_bytes=token)

    def log_in(self, user: str = "alice") -> Any:
        """Authenticate by PLAIN; the last answer."""
        assert self.shake_hands().error_code == NONE
        answer = self.authenticate(plain(user))
        assert answer.error_code == NONE, answer
        return answer

    def log_in_by_scram(self, user: str, mechanism: str) -> Any:
        assert self.shake_hands(mechanism).error_code == NONE
        client = make_client(user, mechanism=ScramMechanism(mechanism))
        first = self.authenticate(client.get_client_first().encode())
        client.set_server_first(first.auth_bytes.decode())
        final = self.authenticate(client.get_client_final().encode())
        client.set_server_final(final.auth_bytes.decode())
        return final

    def send_raw(self, token: bytes) -> None:
        self.send(struct.pack(">i", len(token)) + token)
        self.turn()

    @property
    def principal(self) -> str:
        """Whom requests are from, as the connection's next caller has it."""
        caller: Caller = self.connection._compute_caller("")
        return caller.principal

    @property
    def is_open(self) -> bool:
        return self.transport.is_open and not self.transport.was_aborted

    def only(self, key: int, version: int) -> Any:
        [(_, answer)] = [parse(key, version, data) for data in self.frames()]
        return answer
