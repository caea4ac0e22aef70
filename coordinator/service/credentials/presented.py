"""The credentials that a call presents: the value of ``authorization`` in its metadata."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from model.secret import Secret

KEY: Final = "authorization"


class MalformedCredentials(Exception):
    """The value is not one of ``Bearer TOKEN`` and ``Basic base64(user:password)``."""


class BearerToken(NamedTuple):
    """A signed token."""

    token: Secret


class UserPassword(NamedTuple):
    """A user and the password."""

    user: str
    password: Secret


Presented: TypeAlias = BearerToken | UserPassword


def find_presented(metadata: Iterable[tuple[str, str | bytes]] | None) -> Presented | None:
    """The credentials; ``None`` without any. Raises ``MalformedCredentials``."""
    found = [value for key, value in metadata or () if key == KEY]
    if not found:
        return None
    if len(found) > 1 or not isinstance(found[0], str):
        raise MalformedCredentials
    scheme, _, text = found[0].strip().partition(" ")
    match scheme.lower():
        case "bearer" if text.strip():
            return BearerToken(Secret(text.strip()))
        case "basic":
            return _decode_basic(text.strip())
        case _:
            raise MalformedCredentials


def _decode_basic(text: str) -> UserPassword:
    try:
        decoded = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        raise MalformedCredentials from None
    user, colon, password = decoded.partition(":")
    if not (user and colon and password):
        raise MalformedCredentials
    return UserPassword(user, Secret(password))
