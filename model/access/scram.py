"""What a server keeps of a password, as in KIP-84 and RFC 5802: nothing that logs anybody in."""

from __future__ import annotations

from enum import Enum
from typing import Final

from model.value import value


class ScramMechanism(Enum):
    """A mechanism of SCRAM, by its name in SASL."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


MECHANISM_CODES: Final = {ScramMechanism.SHA_256: 1, ScramMechanism.SHA_512: 2}
"""Their numbers in Kafka's protocol, which side records use too."""
MECHANISMS: Final = {code: mechanism for mechanism, code in MECHANISM_CODES.items()}

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""Kafka's bounds: a client computes so many rounds at each login."""
SALT_BYTES_MAX: Final = 1_024
USER_NAME_BYTES_MAX: Final = 1_024
"""In UTF-8. A name and a salt stay in memory."""
USERS_MAX: Final = 20_000
"""The most users of a server: a list of all is made in one turn."""
FAKE_SALT_SECRET_BYTES: Final = 32
NEW_SALT_BYTES: Final = 24
"""The salt of a credential that `muster user` makes, and of one that is made up."""
PASSWORD_BYTES_MAX: Final = 1_024
"""In UTF-8."""


@value
class ScramCredential:
    """The credential of one user for one mechanism."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"
