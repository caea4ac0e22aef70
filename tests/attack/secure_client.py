"""A blocking client that comes over TLS and says who it is."""

from __future__ import annotations

import base64
import http.client
import ssl
from pathlib import Path

import grpc

from tests.interop.security import PLAIN, Security
from tests.support.wire.blocking import TIMEOUT_S, Client

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


class SecureClient(Client):
    """As ``Client``, after a handshake and a login. Raises ``PermissionError`` if it is refused."""

    def __init__(
        self, address: tuple[str, int], security: Security, timeout_s: float = TIMEOUT_S
    ) -> None:
        super().__init__(address, timeout_s)
        try:
            if security.ca:
                self._stream.close()
                context = make_context(security)
                self._socket = context.wrap_socket(self._socket, server_hostname=address[0])
                self._stream = self._socket.makefile("rb")
            if security.mechanism:
                assert security.mechanism == PLAIN
                self._log_in(security)
        except BaseException:
            self.close()
            raise

    def _log_in(self, security: Security) -> None:
        taken = self.ask(SASL_HANDSHAKE, 1, mechanism=security.mechanism)
        if taken.error_code:
            raise PermissionError(f"{security.mechanism} is answered {taken.error_code}")
        token = make_plain_token(security.user, security.password)
        code = self.ask(SASL_AUTHENTICATE, 2, auth_bytes=token).error_code
        if code:
            raise PermissionError(f"the login is answered {code}")


def connect(address: tuple[str, int], security: Security | None) -> Client:
    """A client of a listener with whatever security it has."""
    return Client(address) if security is None else SecureClient(address, security)


def make_context(security: Security) -> ssl.SSLContext:
    """Trusts the authority of the tests, and resumes no session."""
    return ssl.create_default_context(cafile=security.ca)


def is_ready(address: tuple[str, int], context: ssl.SSLContext | None) -> bool:
    """Whether /readyz over a new connection says so."""
    host, port = address
    door = (
        http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        if context is None
        else http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    )
    try:
        door.request("GET", "/readyz")
        return door.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        door.close()


def connect_grpc(target: str, security: Security | None) -> grpc.Channel:
    """A connection of its own: gRPC shares them otherwise."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    if security is None:
        return grpc.insecure_channel(target, options=options)
    trusted = grpc.ssl_channel_credentials(Path(security.ca).read_bytes())
    return grpc.secure_channel(target, trusted, options=options)


def make_metadata(security: Security | None) -> tuple[tuple[str, str], ...]:
    """What a gRPC client shows with each call."""
    return () if security is None else (("authorization", make_basic(security)),)


def make_basic(security: Security) -> str:
    pair = f"{security.user}:{security.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def make_plain_token(user: str, password: str) -> bytes:
    return f"\0{user}\0{password}".encode()
