"""Checks credentials by logins at the cluster that is behind, which alone knows what is right.

The cluster does not tell when a password changes: one that was right counts for a while more.
"""

from __future__ import annotations

from typing import Final

from coordinator.service.credentials.shared_checks import SharedChecks
from coordinator.service.credentials.verifiers import LoginVerifier
from security.identity import Identity

LOGINS: Final = 8
"""So many logins are made at a time."""
REMEMBERED_S: Final = 60.0


class LoginChecks(SharedChecks):
    """Each check is a login, for one kind of credentials."""

    __slots__ = ("_verifier",)

    def __init__(self, verifier: LoginVerifier, key: bytes) -> None:
        """``key``: random bytes, of this process alone."""
        super().__init__(lambda user: None, key, places=LOGINS, kept_s=REMEMBERED_S)
        self._verifier = verifier

    async def _verify(self, user: str, password: str) -> Identity:
        return await self._verifier.verify(user, password)
