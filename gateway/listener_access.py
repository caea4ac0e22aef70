"""What a listener asks of its clients before it serves them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class SecurityProtocol(Enum):
    """Kafka's security protocols."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True)
class ListenerAccess:
    """One listener: its name, its protocol and the address that its clients are told.

    ``advertised_host`` and ``advertised_port`` are in responses to this listener's clients; with
    ``None`` they get the address that they connected to.
    """

    name: str = "PLAINTEXT"
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    advertised_host: str | None = None
    advertised_port: int | None = None


OPEN: Final = ListenerAccess()
"""Plain bytes, and nobody authenticates."""
