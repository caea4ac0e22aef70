"""Why a connection to a broker cannot be opened."""

from __future__ import annotations

from enum import Enum, auto

from upstream.cluster.cluster import NotSent


class Trouble(Enum):
    """What is wrong; ``start_checks`` says what to do."""

    NO_ANSWER = auto()
    """Refused, unknown, or silent."""
    CLOSED = auto()
    """It was accepted, and closed at the first request."""
    NOT_KAFKA = auto()
    TLS_WANTED = auto()
    NO_TLS = auto()
    """The TLS handshake failed without a word of TLS from the other side."""
    UNTRUSTED = auto()
    """TLS: the broker's certificate is not accepted, or the broker does not accept ours."""
    SASL_WANTED = auto()
    NO_SASL = auto()
    """SASL is not spoken there, or not this mechanism."""
    NOT_AUTHENTICATED = auto()


class OpeningFault(NotSent):
    """Nothing of a caller's was sent."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble
