"""The SCRAM credentials in force."""

from __future__ import annotations

from collections.abc import Iterator

from model.scram import ScramCredential, ScramMechanism


class ScramCredentials:
    """The credentials of a server, by user and mechanism. Only replay changes them."""

    __slots__ = ("_by_user",)

    def __init__(self) -> None:
        self._by_user: dict[str, dict[ScramMechanism, ScramCredential]] = {}

    def __len__(self) -> int:
        return len(self._by_user)

    def __iter__(self) -> Iterator[str]:
        yield from self._by_user

    def find(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """The credential of this user for the mechanism."""
        return self._by_user.get(user, {}).get(mechanism)

    def find_mechanisms(self, user: str) -> dict[ScramMechanism, ScramCredential]:
        """All credentials of a user; none for an unknown one."""
        return dict(self._by_user.get(user, {}))

    def put(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        """Set the credential of a user for a mechanism."""
        self._by_user.setdefault(user, {})[mechanism] = credential

    def discard(self, user: str, mechanism: ScramMechanism) -> None:
        """Remove a credential, if it is there."""
        found = self._by_user.get(user, {})
        found.pop(mechanism, None)
        if not found:
            self._by_user.pop(user, None)
