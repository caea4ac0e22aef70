"""PLAIN (RFC 4616): a user and a password in clear text, of users in the server's settings."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from model.secret import Secret
from security.identity import Identity
from security.sasl.conversation import Authenticated, NotAuthenticated, decode_text

PLAIN: Final = "PLAIN"
TOKEN_BYTES_MAX: Final = 8 * 1024
_NO_DIGEST: Final = hashlib.sha256(b"").digest()
"""Compared with that of a password for an unknown user: no password of a user is empty."""


class Plain:
    """The mechanism, for users with these passwords."""

    def __init__(self, passwords: Mapping[str, Secret]) -> None:
        self._digests = {user: _digest(each.reveal()) for user, each in passwords.items()}

    @property
    def name(self) -> str:
        return PLAIN

    def begin(self, nonce: str) -> Plain:
        """A conversation of one token, which keeps nothing."""
        return self

    def answer(self, token: bytes, now_s: float) -> Authenticated:
        """Check the client's only token."""
        parts = decode_text(token, TOKEN_BYTES_MAX).split("\0")
        if len(parts) != 3:
            what = f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
            raise NotAuthenticated("the token is malformed", what)
        authorization_id, user, password = parts
        if not user:
            what = "Authentication failed: username not specified"
            raise NotAuthenticated("the token has no user", what)
        if not password:
            what = "Authentication failed: password not specified"
            raise NotAuthenticated("the token has no password", what)
        known = self._digests.get(user, _NO_DIGEST)
        if not hmac.compare_digest(known, _digest(password)):
            what = "Authentication failed: Invalid username or password"
            raise NotAuthenticated("wrong user or password", what)
        if authorization_id not in ("", user):
            raise NotAuthenticated(
                "the client asks to act as another user",
                "Authentication failed: Client requested an authorization id that is different "
                "from username",
            )
        return Authenticated(Identity(f"User:{user}"))


def _digest(password: str) -> bytes:
    """Of equal length for all passwords, so that a comparison tells nothing of the length."""
    return hashlib.sha256(password.encode("utf-8")).digest()
