"""The sign of a Muster: who it is, in the user data of the assignment that its sentinel has.

Every tool and every other Muster can read it with DescribeGroups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from muster.assignors.embedded import (
    Assignment,
    MalformedProtocolError,
    decode_assignment,
    encode_assignment,
    group_partitions,
)

INSTANCE_ID: Final = "muster"
"""The instance id of every sentinel; whoever joins with it fences the one before."""
PROTOCOL_NAME: Final = "muster"
"""The protocol that no stock client has, so that each is refused."""
_WORD: Final = "muster"
_ASSIGNMENT_VERSION: Final = 0
_PARTS: Final = 3
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class SentinelSign:
    """Whose sentinel it is: the UUID of the Muster's store, and where its node listens."""

    uuid: str
    host: str
    port: int


def encode_signed_assignment(sign: SentinelSign, partitions: Iterable[tuple[str, int]]) -> bytes:
    """The assignment that the sentinel gives to itself, with the sign in its user data."""
    data = f"{_WORD} {sign.uuid} {sign.host}:{sign.port}".encode()
    return encode_assignment(
        Assignment(group_partitions(sorted(partitions)), data), _ASSIGNMENT_VERSION
    )


def decode_sign(assignment: bytes) -> SentinelSign | None:
    """The sign in an assignment; ``None`` if there is none, or it is not well-formed."""
    try:
        data = decode_assignment(assignment).user_data
        parts = (data or b"").decode().split(" ")
    except (MalformedProtocolError, UnicodeDecodeError):
        return None
    if len(parts) != _PARTS or parts[0] != _WORD:
        return None
    host, colon, port = parts[2].rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port[:6]) > _PORT_MAX:
        return None
    return SentinelSign(parts[1], host, int(port))
