"""The subscription and the assignment of a classic consumer (ConsumerProtocol, version 0)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from cli.load.wire.messages import MalformedAnswer

PROTOCOL_TYPE: Final = "consumer"
PROTOCOL_NAME: Final = "range"
_NO_USER_DATA: Final = struct.pack(">i", -1)


def encode_subscription(topic: str) -> bytes:
    """The metadata of a member that reads one topic."""
    return struct.pack(">hi", 0, 1) + _encode_text(topic) + _NO_USER_DATA


def encode_assignment(topic: str, partitions: Sequence[int]) -> bytes:
    """Partitions of one topic."""
    numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return struct.pack(">hi", 0, 1) + _encode_text(topic) + numbers + _NO_USER_DATA


def decode_assignment(data: bytes) -> tuple[int, ...]:
    """The partitions that ``encode_assignment`` gave; none for no bytes."""
    if not data:
        return ()
    try:
        (topic_bytes,) = struct.unpack_from(">h", data, 6)
        start = 8 + topic_bytes
        (count,) = struct.unpack_from(">i", data, start)
        return struct.unpack_from(f">{count}i", data, start + 4)
    except struct.error as error:
        raise MalformedAnswer("an assignment that the leader did not make") from error


def compute_ranges(members: Sequence[str], partitions: int) -> dict[str, range]:
    """Consecutive partitions for each member, in the order of their ids."""
    shares: dict[str, range] = {}
    start = 0
    for index, member_id in enumerate(sorted(members)):
        count = partitions // len(members) + (index < partitions % len(members))
        shares[member_id] = range(start, start + count)
        start += count
    return shares


def _encode_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
