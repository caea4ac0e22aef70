"""What the listeners have to know of TLS and of who their clients are, made together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cli.serve.doors.certificates import Certificates
from cli.serve.doors.grpc_security import make_grpc_security
from cli.serve.doors.http_tls import find_http_tls
from cli.serve.doors.listening import make_wire_listeners
from cli.serve.doors.sasl import SaslSetup
from cli.settings import Resolved
from coordinator.runtime.audit import Audit

if TYPE_CHECKING:
    from upstream.cluster.cluster import Cluster


class Doors:
    """The listeners of the Kafka wire, and the security of gRPC and HTTP."""

    def __init__(self, resolved: Resolved, audit: Audit, cluster: Cluster | None = None) -> None:
        """``cluster`` is what Muster stands in front of.

        Raises ``SettingsError``, ``CommandError``.
        """
        self.certificates = Certificates()
        self._sasl = SaslSetup(resolved, cluster)
        credentials = self.credentials = self._sasl.credentials
        """Those of SCRAM users, which the coordinator fills."""
        self.listeners = make_wire_listeners(resolved, self.certificates, self._sasl)
        self.grpc = make_grpc_security(resolved, self.certificates, self._sasl, credentials, audit)
        self.http_tls = find_http_tls(resolved, self.certificates)

    async def start(self, find_secret: Callable[[], bytes]) -> None:
        """Read the keys of tokens, and look after files. Raises ``CommandError``.

        ``find_secret``: what the salts of unknown users are derived from.
        """
        await self._sasl.start(find_secret)
        self.certificates.start()

    async def stop(self) -> None:
        """Look after nothing more."""
        await self.certificates.stop()
        self._sasl.stop()
