"""How a client connects with TLS, and how it shows who it is."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from muster.arguments import check_secret, check_text

Pem: TypeAlias = str | os.PathLike[str] | bytes
"""The path of a PEM file, or its content as bytes."""


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS to the server, whose certificate must be of a ``ca``; without one, of gRPC's own list.

    ``certificate`` and ``key`` are the client's, for a server that asks for one; a file with both
    needs to be named once. Files are read again when they change: the next connection uses what is
    in them then. ``server_name`` is the name in the server's certificate, if it is not the
    target's. A key must not have a password.
    """

    ca: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    server_name: str = ""

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise ValueError("a key without its certificate")
        check_text("server_name", self.server_name)

    def __repr__(self) -> str:
        shown = {
            name: value if isinstance(value, str | os.PathLike) else "PEM"
            for name in ("ca", "certificate", "key")
            if (value := getattr(self, name)) is not None
        }
        return f"Tls({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


@dataclass(frozen=True, slots=True)
class Basic:
    """The name and password of a user of the server (`muster user create`)."""

    user: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        check_text("user", self.user)
        check_secret("password", self.password)
        if not self.user or ":" in self.user or not self.password:
            raise ValueError("a user needs a name without a colon, and a password")


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and when it ends (seconds since 1970); ``None`` for what a JWT itself says."""

    value: str = field(repr=False)
    expires_at: float | None = None

    def __post_init__(self) -> None:
        check_secret("value", self.value)
        if not self.value.isascii() or not self.value.isprintable() or " " in self.value:
            raise ValueError("a token has other characters than those of a header")
        end = self.expires_at
        if end is not None and (isinstance(end, bool) or not isinstance(end, int | float)):
            raise TypeError(f"expires_at must be seconds since 1970, not {type(end).__name__}")


Source: TypeAlias = Callable[[], "Token | str | Awaitable[Token | str]"]


@dataclass(frozen=True, slots=True)
class Bearer:
    """A signed token (OAuth): the token, or a function that gets one, also a coroutine function.

    A function is called again before each token ends. One that is not a coroutine function runs in
    a thread of its own.
    """

    token: str | Source = field(repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.token, str):
            Token(self.token)
        elif not callable(self.token):
            raise TypeError("token must be a string, or a function that returns one")


Credentials: TypeAlias = Basic | Bearer


class Access(NamedTuple):
    """How a client reaches its server. Members with the same share a connection."""

    tls: Tls | None = None
    credentials: Credentials | None = None


OPEN: Final = Access()
"""Without TLS and credentials."""


def check_access(target: str, tls: object, credentials: object) -> Access:
    """The access to a target. Raises ``TypeError``, ``ValueError``."""
    if tls is not None and not isinstance(tls, Tls):
        raise TypeError(f"tls must be a muster.Tls, not {type(tls).__name__}")
    if credentials is not None and not isinstance(credentials, Basic | Bearer):
        kind = type(credentials).__name__
        raise TypeError(f"credentials must be a muster.Basic or muster.Bearer, not {kind}")
    if credentials is not None and tls is None and not _is_loopback(target):
        raise ValueError(f"credentials would cross the network in the clear to {target}: pass tls")
    return Access(tls, credentials)


def _is_loopback(target: str) -> bool:
    host = target.rpartition(":")[0] or target
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
