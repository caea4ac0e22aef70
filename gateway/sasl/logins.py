"""Logins at the cluster that Muster stands in front of, in the names of clients.

``upstream.logins`` has the implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from model.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class HandshakeAnswer:
    """The cluster's answer to a handshake, with the mechanisms that it has."""

    code: ErrorCode
    mechanisms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """The answer to a token; a session without an end has the lifetime 0."""

    code: ErrorCode
    message: str | None = None
    token: bytes = b""
    session_lifetime_ms: int = 0


OnHandshake: TypeAlias = Callable[[HandshakeAnswer | None], None]
OnToken: TypeAlias = Callable[[TokenAnswer | None], None]
"""``None``: the cluster did not answer, and the login is over."""


class Login(Protocol):
    """One client's connection to a broker, on which it logs in, and then sends its requests.

    Each call to log in is made when the one before is answered. A callback comes once, later, on
    the loop, and within the time that the cluster is given.
    """

    @property
    def is_taken(self) -> bool:
        """Whether a request of the client was sent on it."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more."""

    def shake_hands(self, mechanism: str, reply: OnHandshake) -> None:
        """Pass a handshake on."""

    def authenticate(self, token: bytes, reply: OnToken) -> None:
        """Pass a token on."""

    def settle(self) -> None:
        """The client is known: what follows is its requests."""

    def send(self, frame: bytes) -> None:
        """Send a whole frame, size included."""

    async def read_frame(self) -> bytes | None:
        """The next frame, size included; ``None`` at the end."""

    def close(self) -> None:
        """Close; nothing is called back any more."""


class Logins(Protocol):
    """Opens connections for clients."""

    def open(self) -> Login:
        """A connection that nobody has authenticated on; it is made when it is first used."""
