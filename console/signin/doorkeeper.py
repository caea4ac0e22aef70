"""Who may look, as the gRPC listener would know it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import grpc

from console.signin.browsers import Browser
from console.signin.sessions import Sessions
from coordinator.service.calls.local_calls import CallRefused, authenticate_locally
from coordinator.service.credentials.authentication import Authenticate
from security.identity import NOBODY, Identity

_NEEDS_CERTIFICATE: Final = (
    "listen.grpc takes only clients with a certificate, and this browser has shown none: the "
    "console needs listen.http=SSL://HOST:PORT and listener.name.http.ssl.client.auth=required."
)


class NotSignedIn(Exception):
    """The visitor has to sign in first."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What people sign in with: what calls present to the gRPC listener."""

    authenticate: Authenticate
    takes_passwords: bool
    takes_tokens: bool


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """Finds who asks.

    With ``credentials`` people sign in. Else they are who the certificate of their browser says
    (``by_certificate``); without one anonymous, unless ``needs_certificate``.
    """

    sessions: Sessions
    credentials: Credentials | None = None
    by_certificate: Authenticate | None = None
    needs_certificate: bool = False

    async def find_identity(self, browser: Browser, peer: str, certificate: str | None) -> Identity:
        """Who asks. Raises ``NotSignedIn``, ``CallRefused``."""
        if self.credentials is not None:
            session = self.sessions.find(browser.secret)
            if session is None:
                raise NotSignedIn
            return session.identity
        if certificate is not None and self.by_certificate is not None:
            pem = certificate.encode("ascii")
            return await authenticate_locally(self.by_certificate, peer, certificate=pem)
        if self.needs_certificate:
            raise CallRefused(grpc.StatusCode.PERMISSION_DENIED, _NEEDS_CERTIFICATE)
        return NOBODY

    def is_current(self, browser: Browser) -> bool:
        """Whether what was found of the browser still holds, as for a stream that goes on."""
        return self.credentials is None or self.sessions.is_open(browser.secret)

    async def sign_in(
        self, browser: Browser, peer: str, *, user: str, password: str, token: str
    ) -> None:
        """Begin a session of the browser. Raises ``CallRefused``."""
        assert self.credentials is not None
        if token:
            authorization = f"Bearer {token}"
        else:
            encoded = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
            authorization = f"Basic {encoded}"
        identity = await authenticate_locally(
            self.credentials.authenticate, peer, authorization=authorization
        )
        self.sessions.open(browser.secret, identity)
