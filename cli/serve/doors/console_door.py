"""The console in the HTTP server, made when a browser first asks for it."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import structlog

from cli.serve.doors.doors import Doors
from cli.settings import Resolved
from cli.settings.listeners.door_rules import HTTP
from cli.settings.listeners.listener_tls import compute_tls_settings
from cli.settings.tables.console_table import ENABLE, HOSTS, SESSION_IDLE, SESSION_MAX, STREAMS
from cli.version import compute_versions
from console.facts import FindFacts
from coordinator.runtime.audit import Audit
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.service.calls.local_calls import LocalCalls
from coordinator.service.credentials.authentication import CertificateAuthentication
from security.identity import Identity
from security.loopback import is_loopback
from security.tls.principals import compute_identity
from security.tls.server_contexts import TlsContexts
from security.tls.tls_settings import ClientAuth

if TYPE_CHECKING:
    from console.signin.doorkeeper import Doorkeeper

log = structlog.get_logger("muster.serve")

App = Callable[[Any, Any, Any], Awaitable[None]]

_SERVER_ID_CHARS: Final = 12


class ConsoleDoor:
    """Makes the application on a thread: most servers never need its templates."""

    __slots__ = ("_make", "_making")

    def __init__(self, make: Callable[[], App]) -> None:
        self._make = make
        self._making: asyncio.Future[App] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._making is None:
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        app = await asyncio.shield(self._making)
        await app(scope, receive, send)


def make_console_door(
    resolved: Resolved,
    doors: Doors,
    audit: Audit,
    *,
    calls: LocalCalls,
    authorizer: Authorizer,
    cluster_id: str,
    find_facts: FindFacts,
) -> ConsoleDoor | None:
    """The console that the settings ask for; ``None`` for none."""
    if not resolved.values[ENABLE]:
        return None
    _warn_if_open(resolved, doors)
    endpoint = resolved.endpoint(HTTP)
    server_id = hashlib.sha256(cluster_id.encode()).hexdigest()[:_SERVER_ID_CHARS]

    def make() -> App:
        from console.app import make_app
        from console.listing.viewers import Viewers
        from console.rendering import Renderer
        from console.signin.browsers import Browsers
        from console.site import Site
        from console.streams import EventStreams

        return make_app(
            Site(
                calls,
                Renderer(),
                Browsers(server_id, is_secure=endpoint.protocol.uses_tls),
                _make_doorkeeper(resolved, doors, audit),
                Viewers(calls, are_equal=isinstance(authorizer, AllowAll)),
                find_facts,
                compute_versions(),
                _find_names(resolved, endpoint.host),
                EventStreams(resolved.integer(STREAMS)),
            )
        )

    return ConsoleDoor(make)


def _make_doorkeeper(resolved: Resolved, doors: Doors, audit: Audit) -> Doorkeeper:
    from console.signin.doorkeeper import Credentials, Doorkeeper
    from console.signin.sessions import Sessions

    sessions = Sessions(
        idle_ms=resolved.integer(SESSION_IDLE),
        longest_ms=resolved.integer(SESSION_MAX),
        monotonic_ms=lambda: time.monotonic_ns() // 1_000_000,
        wall_ms=lambda: time.time_ns() // 1_000_000,
    )
    grpc = doors.grpc
    credentials = None
    if grpc.needs_credentials:
        assert grpc.authenticate is not None
        takes_passwords = grpc.passwords is not None
        credentials = Credentials(grpc.authenticate, takes_passwords, grpc.takes_tokens)
    by_certificate = None
    if doors.http_tls is not None:
        finds = make_certificate_finder(doors.http_tls)
        by_certificate = CertificateAuthentication(finds, audit).authenticate
    needs_certificate = grpc.tls is not None and grpc.tls.requires_client
    return Doorkeeper(sessions, credentials, by_certificate, needs_certificate)


def make_certificate_finder(contexts: TlsContexts) -> Callable[[bytes], Identity]:
    """Who a certificate in PEM is about, by the rules of the HTTP listener."""

    def find(certificate: bytes) -> Identity:
        der = ssl.PEM_cert_to_DER_cert(certificate.decode("ascii"))
        return compute_identity(der, contexts.current.rules)

    return find


def _find_names(resolved: Resolved, listens_at: str) -> frozenset[str]:
    """What this machine is called, as far as is known without asking anybody, and as was told."""
    name, told = socket.gethostname(), resolved.values[HOSTS] or ()
    assert isinstance(told, tuple)
    names = {name, name.partition(".")[0], listens_at, *told}
    return frozenset(each.lower().rstrip(".") for each in names) - {""}


def _warn_if_open(resolved: Resolved, doors: Doors) -> None:
    """Tell whoever has opened the listener for something else."""
    endpoint = resolved.endpoint(HTTP)
    shows_certificates = endpoint.protocol.uses_tls and (
        compute_tls_settings(resolved.values, endpoint).client_auth is ClientAuth.REQUIRED
    )
    is_closed = shows_certificates or is_loopback(endpoint.host)
    if not is_closed and not doors.grpc.needs_credentials:
        log.warning(
            "console_open",
            listener=str(endpoint),
            cause="whoever reaches listen.http may use the console as User:ANONYMOUS; set "
            "console.enable=false if it is for probes and metrics alone",
        )
