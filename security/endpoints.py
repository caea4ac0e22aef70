"""Where a server listens, and what its clients have to show there, in Kafka's words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SecurityProtocol(Enum):
    """How a listener's clients speak, and whether they authenticate."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener: ``INTERNAL:PLAINTEXT://127.0.0.1:9092``, and the address given to its clients.

    ``None`` for an advertised part: what the client connected to.
    """

    name: str
    protocol: SecurityProtocol
    host: str
    port: int
    advertised_host: str | None = None
    advertised_port: int | None = None
