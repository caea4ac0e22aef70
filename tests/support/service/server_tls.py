"""TLS of gRPC servers in tests."""

from __future__ import annotations

from pathlib import Path

from coordinator.service.credentials.server_tls import ServerTls
from security.tls.server_contexts import TlsContexts, load_tls
from security.tls.tls_settings import ClientAuth, TlsSettings
from tests.support.certificates import Authority


def make_settings(keys: Path, authority: Authority, *, requires_client: bool) -> TlsSettings:
    """A server with these keys, whose clients are the authority's."""
    return TlsSettings(
        keystore_location=str(keys),
        truststore_location=str(authority.file),
        client_auth=ClientAuth.REQUIRED if requires_client else ClientAuth.NONE,
    )


def make_server_tls(authority: Authority, *, requires_client: bool = False) -> ServerTls:
    """A server on loopback whose certificate is the authority's."""
    settings = make_settings(
        authority.issue("server").both, authority, requires_client=requires_client
    )
    return ServerTls(TlsContexts(load_tls(settings)), requires_client=requires_client)
