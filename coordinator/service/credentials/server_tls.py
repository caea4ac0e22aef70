"""TLS of the gRPC listener, with certificates that can be replaced while it runs."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import grpc

from security.identity import Identity
from security.tls.principals import compute_identity
from security.tls.server_contexts import TlsContexts

if TYPE_CHECKING:
    from security.tls.key_material import KeyMaterial


class ServerTls:
    """What new connections are shown; open ones keep what they were shown.

    ``requires_client``: a client without a certificate of a trusted CA cannot connect. gRPC has
    nothing between that and not to ask for one.
    """

    __slots__ = ("_contexts", "_shown", "requires_client")

    def __init__(self, contexts: TlsContexts, *, requires_client: bool) -> None:
        self._contexts = contexts
        self._shown = contexts.current
        self.requires_client = requires_client

    def make_credentials(self) -> grpc.ServerCredentials:
        """The credentials of a server."""
        return grpc.dynamic_ssl_server_credentials(
            _make_configuration(self._shown.material),
            self._fetch,  # type: ignore[arg-type]  # None, for no change, is missing in the stub
            self.requires_client,
        )

    def compute_identity(self, certificate: bytes) -> Identity:
        """Who a certificate in PEM is about. Raises ``PrincipalFault``."""
        der = ssl.PEM_cert_to_DER_cert(certificate.decode("ascii"))
        return compute_identity(der, self._contexts.current.rules)

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """What has changed since the last handshake; gRPC asks before each, on its own threads."""
        current = self._contexts.current
        if current is self._shown:
            return None
        self._shown = current
        return _make_configuration(current.material)


def _make_configuration(material: KeyMaterial) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key.reveal().encode(), material.chain)], material.trusted
    )
