"""What the connections of one address have in common, apart from what all addresses share."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.sasl.sasl_listener import SaslListener
from security.endpoints import Endpoint, SecurityProtocol
from security.tls.server_contexts import TlsContexts


@dataclass(frozen=True, slots=True, eq=False)
class WireListener:
    """One address of the Kafka wire; the limits are of its connections alone.

    ``tls`` has the keys, if its clients encrypt; ``sasl`` says what its clients have to show before
    they are served.
    """

    endpoint: Endpoint
    tls: TlsContexts | None = None
    sasl: SaslListener | None = None
    max_connections: int | None = None
    max_connection_creation_rate: int | None = None


def make_plain_listener(host: str, port: int) -> WireListener:
    """An address whose clients neither encrypt nor authenticate."""
    plain = SecurityProtocol.PLAINTEXT
    return WireListener(Endpoint(plain.value, plain, host, port))
