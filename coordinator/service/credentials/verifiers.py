"""What checks tokens and passwords, as the gRPC listener sees it.

Whoever has none of these gets ``security.sasl``'s ``NotAuthenticated``.
"""

from __future__ import annotations

from typing import Protocol

from security.identity import Identity


class CannotVerify(Exception):
    """It is not known whether the credentials are right, as nobody who knows answers."""


class TokenVerifier(Protocol):
    """Checks signed tokens. Must not block."""

    def verify(self, token: str, now_s: float) -> Identity:
        """Who the token was issued to. Raises ``NotAuthenticated``."""


class PasswordVerifier(Protocol):
    """Checks passwords, which takes milliseconds, on any thread."""

    def verify(self, user: str, password: str) -> Identity:
        """Who the user is. Raises ``NotAuthenticated``, after as long for an unknown user."""


class LoginVerifier(Protocol):
    """Checks a password, or without a user a token, by a login elsewhere."""

    async def verify(self, user: str, secret: str) -> Identity:
        """Who that is. Raises ``NotAuthenticated``, ``CannotVerify``."""
