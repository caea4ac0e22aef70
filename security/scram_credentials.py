"""The SCRAM credentials in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from model.access.scram import ScramCredential, ScramMechanism

_NONE: Final[Mapping[ScramMechanism, ScramCredential]] = MappingProxyType({})


class ScramCredentials:
    """The credentials of a server, by user and mechanism. Only replay changes them.

    ``fake_salt_secret`` is durable from the first change of credentials on, ``None`` before.
    """

    __slots__ = ("_by_user", "fake_salt_secret")

    def __init__(self) -> None:
        self._by_user: dict[str, Mapping[ScramMechanism, ScramCredential]] = {}
        self.fake_salt_secret: bytes | None = None

    def __len__(self) -> int:
        return len(self._by_user)

    def __iter__(self) -> Iterator[str]:
        yield from self._by_user

    def __contains__(self, user: str) -> bool:
        return user in self._by_user

    def find(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """The credential of this user for the mechanism."""
        return self._by_user.get(user, _NONE).get(mechanism)

    def find_mechanisms(self, user: str) -> Mapping[ScramMechanism, ScramCredential]:
        """All credentials of a user; none for an unknown one."""
        return self._by_user.get(user, _NONE)

    def copy(self) -> dict[str, Mapping[ScramMechanism, ScramCredential]]:
        """All users as they are now. What a user has is replaced by a change, never modified."""
        return self._by_user.copy()

    def put(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        """Set the credential of a user for a mechanism."""
        self._by_user[user] = {**self._by_user.get(user, _NONE), mechanism: credential}

    def discard(self, user: str, mechanism: ScramMechanism) -> None:
        """Remove a credential, if it is there."""
        left = dict(self._by_user.get(user, _NONE))
        left.pop(mechanism, None)
        if left:
            self._by_user[user] = left
        else:
            self._by_user.pop(user, None)
