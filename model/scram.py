"""What a server keeps of a password, as in KIP-84 and RFC 5802: nothing that logs anybody in."""

from __future__ import annotations

from enum import Enum

from model.value import value


class ScramMechanism(Enum):
    """A mechanism of SCRAM, by its name in SASL."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


@value
class ScramCredential:
    """The credential of one user for one mechanism."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"
