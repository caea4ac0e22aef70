"""Users of SCRAM, and a client's half of a conversation."""

from __future__ import annotations

import scramp

from model.access.scram import ScramCredential, ScramMechanism
from security.scram_credentials import ScramCredentials

PASSWORD = "correct horse"


def find_secret() -> bytes:
    """What the salts of unknown users are derived from."""
    return b"secret of the server"


def make_credential(
    password: str = PASSWORD,
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    salt: bytes = b"0123456789abcdefghijklmn",
    iterations: int = 4_096,
) -> ScramCredential:
    made = scramp.ScramMechanism(mechanism.value).make_auth_info(password, iterations, salt)
    salt, stored_key, server_key, iterations = made
    return ScramCredential(salt, iterations, stored_key, server_key)


def make_credentials(*users: str, password: str = PASSWORD) -> ScramCredentials:
    """Credentials of both mechanisms for each user."""
    found = ScramCredentials()
    for user in users:
        for mechanism in ScramMechanism:
            found.put(user, mechanism, make_credential(password, mechanism))
    return found


def make_client(
    user: str, password: str = PASSWORD, mechanism: ScramMechanism = ScramMechanism.SHA_256
) -> scramp.ScramClient:
    return scramp.ScramClient([mechanism.value], user, password)
