"""The client's side of the SASL mechanisms: tokens of the server in, tokens of the client out.

What a server sends is not trusted: a mechanism that proves the server (SCRAM) is over only when it
has, and the rounds that a server may ask for are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import scramp
from scramp.core import ScramException

from model.access.scram import ScramMechanism
from security.sasl.conversation import OAUTHBEARER, NotAuthenticated
from security.sasl.plain import PLAIN

SCRAM: Final = tuple(each.value for each in ScramMechanism)
TAKE_PASSWORD: Final = (PLAIN, *SCRAM)
"""Mechanisms of a user and a password."""
MECHANISMS: Final = (*TAKE_PASSWORD, OAUTHBEARER)

SERVER_TOKEN_BYTES_MAX: Final = 64 * 1024
ITERATIONS_MAX: Final = 100_000
"""Rounds of SCRAM: some 30 ms of work, during which nothing else is done."""
_TOKEN_BYTES_MAX: Final = 64 * 1024
_ITERATIONS: Final = re.compile(r"(?:^|,)i=(\d{1,9})(?:,|$)")


class ClientLogin(Protocol):
    """One attempt to log in."""

    def first(self) -> bytes:
        """The client's first token."""

    def answer(self, token: bytes) -> bytes | None:
        """The next token, ``None`` at the end. Raises ``NotAuthenticated``."""


class PlainLogin:
    """PLAIN (RFC 4616)."""

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, token: bytes) -> None:
        return None


class BearerLogin:
    """OAUTHBEARER (RFC 7628)."""

    def __init__(self, token: str) -> None:
        self._token = f"n,,\1auth=Bearer {token}\1\1".encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, token: bytes) -> None:
        """What a server has to say of a token that it refuses ends the login."""
        if token:
            raise NotAuthenticated("the server refuses the token")


class ScramLogin:
    """SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802)."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self._client = scramp.ScramClient([mechanism], user, password)
        self._is_last = False

    def first(self) -> bytes:
        return str(self._client.get_client_first()).encode()

    def answer(self, token: bytes) -> bytes | None:
        if len(token) > SERVER_TOKEN_BYTES_MAX:
            raise NotAuthenticated("the server's token is too long")
        try:
            text = token.decode()
            if self._is_last:
                self._client.set_server_final(text)
                return None
            rounds = _ITERATIONS.search(text)
            if rounds is None or not 0 < int(rounds[1]) <= ITERATIONS_MAX:
                raise NotAuthenticated("the server asks for an impossible number of rounds")
            self._is_last = True
            self._client.set_server_first(text)
            return str(self._client.get_client_final()).encode()
        except (ScramException, ValueError, LookupError) as error:
            raise NotAuthenticated(
                "the server does not prove that it knows the password"
            ) from error


def make_login(
    mechanism: str, user: str, password: str, find_token: Callable[[], str]
) -> ClientLogin:
    """A login by one of ``MECHANISMS``. Raises ``NotAuthenticated``."""
    if mechanism == PLAIN:
        return PlainLogin(user, password)
    if mechanism == OAUTHBEARER:
        return BearerLogin(find_token())
    return ScramLogin(mechanism, user, password)


def read_token(path: str) -> str:
    """The token in a file. Raises ``NotAuthenticated``."""
    try:
        with Path(path).open("rb") as file:
            token = file.read(_TOKEN_BYTES_MAX + 1).decode("ascii", "replace").strip()
    except OSError as error:
        raise NotAuthenticated(f"the token file {path} cannot be read: {error.strerror}") from None
    is_token = token.isascii() and token.isprintable() and " " not in token
    if not token or not is_token or len(token) > _TOKEN_BYTES_MAX:
        raise NotAuthenticated(f"the file {path} has no token")
    return token
