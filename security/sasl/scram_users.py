"""Credentials of SCRAM users, and made-up ones in place of those that nobody has.

An unknown user must not be told apart from a wrong password. It gets a salt that is derived from
the name and a secret of the server, so that it is the same each time, and keys that no password
has.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Final

from model.scram import ScramCredential, ScramMechanism
from security.identity import Identity
from security.sasl.conversation import NotAuthenticated
from security.scram_credentials import ScramCredentials

ITERATIONS_MIN: Final = 4_096
"""Fewer are not accepted, as in Kafka."""
ITERATIONS_MAX: Final = 16_384
"""More are not computed for a password that somebody sends."""
MADE_UP_ITERATIONS: Final = 8_192
SALT_BYTES: Final = 24
PASSWORD_BYTES_MAX: Final = 1_024

HASH_NAMES: Final = {ScramMechanism.SHA_256: "sha256", ScramMechanism.SHA_512: "sha512"}


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
    name = HASH_NAMES[mechanism]

    def derive(purpose: str) -> bytes:
        text = f"{mechanism.value}\0{purpose}\0{user}".encode()
        return hmac.digest(secret, text, name)

    return ScramCredential(
        derive("salt")[:SALT_BYTES], MADE_UP_ITERATIONS, derive("stored key"), derive("server key")
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
            given = password.encode("utf-8")
            user.encode("utf-8")
        except UnicodeEncodeError:
            raise NotAuthenticated("the user or the password is not valid UTF-8") from None
        if len(given) > PASSWORD_BYTES_MAX or len(user) > PASSWORD_BYTES_MAX:
            raise NotAuthenticated(f"longer than {PASSWORD_BYTES_MAX} bytes")
        known = self._credentials.find_mechanisms(user)
        has_one = ScramMechanism.SHA_512 in known and ScramMechanism.SHA_256 not in known
        mechanism = ScramMechanism.SHA_512 if has_one else ScramMechanism.SHA_256
        credential, is_real = find_credential(
            self._credentials, mechanism, user, self._find_secret()
        )
        hash_name = HASH_NAMES[mechanism]
        iterations = min(credential.iterations, ITERATIONS_MAX)
        salted = hashlib.pbkdf2_hmac(hash_name, given, credential.salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        stored_key = hashlib.new(hash_name, client_key).digest()
        is_right = hmac.compare_digest(stored_key, credential.stored_key)
        if not (is_right and is_real):
            raise NotAuthenticated("wrong user or password")
        return Identity(f"User:{user}")
