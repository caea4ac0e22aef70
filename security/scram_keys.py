"""The keys of SCRAM (RFC 5802): what a server keeps of a password, computed from it."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from model.access.scram import ScramCredential, ScramMechanism

HASHES: Final = {ScramMechanism.SHA_256: "sha256", ScramMechanism.SHA_512: "sha512"}
"""The hash of each mechanism, by its name in ``hashlib``."""


def compute_salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """Salt a password. It is taken as it stands: SASLprep is up to the caller."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def compute_credential(
    mechanism: ScramMechanism, salt: bytes, iterations: int, salted_password: bytes
) -> ScramCredential:
    """The credential of a salted password."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", name)
    return ScramCredential(salt, iterations, stored_key, server_key)


def compute_key_size(mechanism: ScramMechanism) -> int:
    """The bytes of a stored key, and of a server key."""
    return hashlib.new(HASHES[mechanism]).digest_size
