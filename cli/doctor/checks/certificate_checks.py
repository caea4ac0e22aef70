"""The keys and certificates of listeners with TLS, read as a server reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject
from cli.settings import Resolved
from cli.settings.listeners.listener_rules import compute_listener_plan
from cli.settings.listeners.listener_tls import compute_tls_settings
from security.endpoints import Endpoint
from security.tls.server_contexts import load_tls
from security.tls.tls_settings import TlsFault, TlsSettings

_DAY_S: Final = 86_400
_SOON_S: Final = 21 * _DAY_S


def check_certificates(subject: Subject) -> Iterator[Finding]:
    """Each listener with TLS: whether its files can be used, and for how long."""
    endpoints = find_secure_endpoints(subject.resolved)
    if not endpoints:
        yield ok("no listener has TLS")
    for setting, endpoint in endpoints:
        tls = compute_tls_settings(subject.resolved.values, endpoint)
        try:
            loaded = load_tls(tls)
        except TlsFault as fault:
            yield fail(f"{setting} ({endpoint.name}): {fault}", "docs/security.md, TLS")
            continue
        yield describe_expiry(f"{setting} ({endpoint.name})", loaded.not_after_s - time.time())
        yield from _check_key(tls)


def find_secure_endpoints(resolved: Resolved) -> list[tuple[str, Endpoint]]:
    """The listeners with TLS, with the settings that make them."""
    found = [
        ("listen.kafka", endpoint) for endpoint in compute_listener_plan(resolved.values).endpoints
    ]
    found += [(name, resolved.endpoint(name)) for name in ("listen.grpc", "listen.http")]
    return [(name, endpoint) for name, endpoint in found if endpoint.protocol.uses_tls]


def describe_expiry(listener: str, left_s: float) -> Finding:
    """What the time that a certificate is still valid means."""
    remedy = "put a new one in its place: it is used within seconds, without a restart"
    if left_s <= 0:
        return fail(f"{listener}: the certificate expired {-left_s / _DAY_S:.0f} days ago", remedy)
    what = f"{listener}: the certificate is valid for {left_s / _DAY_S:.0f} more days"
    return warn(what, remedy) if left_s < _SOON_S else ok(what)


def _check_key(tls: TlsSettings) -> Iterator[Finding]:
    if tls.keystore_location is None:
        return
    path = Path(tls.keystore_location)
    if path.stat().st_mode & 0o007:
        yield warn(f"every user of this machine may read the key in {path}", f"chmod o= {path}")
