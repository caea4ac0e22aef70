"""The keys of the HTTP listener."""

from __future__ import annotations

from cli.serve.doors.certificates import Certificates
from cli.serve.doors.listening import add_certificates
from cli.settings import Resolved
from cli.settings.listeners.door_rules import HTTP
from security.tls.server_contexts import TlsContexts


def find_http_tls(resolved: Resolved, certificates: Certificates) -> TlsContexts | None:
    """The keys of the HTTP listener; ``None`` if it has no TLS. Raises ``CommandError``."""
    endpoint = resolved.endpoint(HTTP)
    if not endpoint.protocol.uses_tls:
        return None
    return add_certificates(resolved, endpoint, HTTP, certificates)
