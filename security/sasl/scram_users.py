"""Credentials of SCRAM users, and made-up ones in place of those that nobody has.

An unknown user must not be told apart from a wrong password. It gets a salt that is derived from
the name and a secret of the server, so that it is the same each time, and keys that no password
has.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final

from model.access.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    NEW_SALT_BYTES,
    PASSWORD_BYTES_MAX,
    ScramCredential,
    ScramMechanism,
)
from security.identity import Identity
from security.sasl.conversation import NotAuthenticated
from security.scram_credentials import ScramCredentials
from security.scram_keys import HASHES, compute_credential, compute_salted_password

MADE_UP_ITERATIONS: Final = ITERATIONS_MIN
"""As a user has them who is made with the defaults, like the size of the salt."""


def find_credential(
    credentials: ScramCredentials, mechanism: ScramMechanism, user: str, secret: bytes
) -> tuple[ScramCredential, bool]:
    """The user's credential, and whether it is a real one. Both take the same time."""
    made_up = _make_up(mechanism, user, secret)
    found = credentials.find(user, mechanism)
    if found is None or found.iterations < ITERATIONS_MIN:
        return made_up, False
    return found, True


def _make_up(mechanism: ScramMechanism, user: str, secret: bytes) -> ScramCredential:
    name = HASHES[mechanism]

    def derive(purpose: str) -> bytes:
        text = f"{mechanism.value}\0{purpose}\0{user}".encode()
        return hmac.digest(secret, text, name)

    return ScramCredential(
        derive("salt")[:NEW_SALT_BYTES],
        MADE_UP_ITERATIONS,
        derive("stored key"),
        derive("server key"),
    )


class PasswordVerifier:
    """Checks the passwords of SCRAM users, for clients that send them as they are.

    It computes for some milliseconds, without the GIL: call it on a thread.
    """

    def __init__(self, credentials: ScramCredentials, find_secret: Callable[[], bytes]) -> None:
        """``find_secret``: what the salts of unknown users are derived from."""
        self._credentials = credentials
        self._find_secret = find_secret

    def verify(self, user: str, password: str) -> Identity:
        """Who the client is. Raises ``NotAuthenticated``."""
        try:
            sizes = len(password.encode("utf-8")), len(user.encode("utf-8"))
        except UnicodeEncodeError:
            raise NotAuthenticated("the user or the password is not valid UTF-8") from None
        if max(sizes) > PASSWORD_BYTES_MAX:
            raise NotAuthenticated(f"longer than {PASSWORD_BYTES_MAX} bytes")
        known = self._credentials.find_mechanisms(user)
        has_one = ScramMechanism.SHA_512 in known and ScramMechanism.SHA_256 not in known
        mechanism = ScramMechanism.SHA_512 if has_one else ScramMechanism.SHA_256
        credential, is_real = find_credential(
            self._credentials, mechanism, user, self._find_secret()
        )
        iterations = min(credential.iterations, ITERATIONS_MAX)
        salted = compute_salted_password(mechanism, password, credential.salt, iterations)
        given = compute_credential(mechanism, credential.salt, iterations, salted)
        is_right = hmac.compare_digest(given.stored_key, credential.stored_key)
        if not (is_right and is_real):
            raise NotAuthenticated("wrong user or password")
        return Identity(f"User:{user}")
