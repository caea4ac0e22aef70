"""What every mechanism of SASL has in common: tokens of the client in, tokens of the server out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from security.identity import Identity

OAUTHBEARER: Final = "OAUTHBEARER"
"""The mechanism of tokens. Its own module takes long to import, and few servers need it."""


class NotAuthenticated(Exception):
    """A client has not shown who it is.

    ``reason`` is for the log, and has nothing that the client sent. ``message`` is for the client,
    where it may know more than that its credentials are not valid.
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message


class UnknownKey(NotAuthenticated):
    """A token is signed with a key that is not known, or not known yet."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The server's token; the client has to send another one."""

    token: bytes


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The client has shown who it is; ``token`` is the server's last one."""

    identity: Identity
    token: bytes = b""


Step: TypeAlias = Challenge | Authenticated


class Conversation(Protocol):
    """One client's attempt to authenticate."""

    def answer(self, token: bytes, now_s: float) -> Step:
        """Answer the client's next token, at ``now_s`` seconds since 1970.

        Raises ``NotAuthenticated``, after which the conversation is over; after ``UnknownKey`` the
        same token may be given again.
        """


class Mechanism(Protocol):
    """One mechanism of SASL, as clients name it."""

    @property
    def name(self) -> str:
        """Its name in SASL."""

    def begin(self, nonce: str) -> Conversation:
        """Start with a client; ``nonce`` is printable, without commas, and never used again."""


def decode_text(token: bytes, limit: int) -> str:
    """The text of a token of at most ``limit`` bytes. Raises ``NotAuthenticated``."""
    if len(token) > limit:
        raise NotAuthenticated(f"the token is longer than {limit} bytes")
    try:
        return token.decode("utf-8")
    except UnicodeDecodeError:
        raise NotAuthenticated("the token is not valid UTF-8") from None
