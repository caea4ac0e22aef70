"""The user data of `sticky` and `cooperative-sticky`: owned partitions and their generation.

`sticky` members revoke everything before they join, so they report what they owned in their user
data: in version 0 the partitions (KIP-54), in version 1 also the generation (KIP-341). The bytes do
not contain the version: a reader of version 1 tries that first, and a reader of version 0 ignores
the bytes after the partitions. `cooperative-sticky` members report their partitions in the
subscription, and the generation here, for leaders that read subscriptions up to version 1 only.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.assignors.embedded.consumer_protocol import NO_GENERATION
from muster.assignors.embedded.fields import MalformedProtocolError, Reader, TopicPartitions, Writer


@dataclass(frozen=True, slots=True)
class StickyUserData:
    """``generation`` is NO_GENERATION if the member reported none."""

    partitions: tuple[TopicPartitions, ...]
    generation: int = NO_GENERATION


def encode_sticky_user_data(user_data: StickyUserData, version: int = 1) -> bytes:
    """Encode user data. Raise MalformedProtocolError for an unknown version or bad values."""
    if version not in (0, 1):
        raise MalformedProtocolError(f"version {version} of sticky user data is not in 0..1")
    writer = Writer()
    writer.topics_partitions(user_data.partitions)
    if version == 1:
        writer.int32(user_data.generation)
    return writer.finish()


def decode_sticky_user_data(data: bytes, highest_version: int = 1) -> StickyUserData:
    """Decode user data as a reader of versions up to ``highest_version`` does.

    Bytes that end before the generation are version 0. Raise MalformedProtocolError for bytes of
    neither version.
    """
    if highest_version not in (0, 1):
        raise MalformedProtocolError(
            f"version {highest_version} of sticky user data is not in 0..1"
        )
    reader = Reader(data)
    partitions = reader.topics_partitions()
    if highest_version == 0:
        return StickyUserData(partitions)
    try:
        return StickyUserData(partitions, reader.int32())
    except MalformedProtocolError:
        return StickyUserData(partitions)


def encode_cooperative_user_data(generation: int) -> bytes:
    """Encode a generation. Raise MalformedProtocolError if it is not a 32-bit integer."""
    writer = Writer()
    writer.int32(generation)
    return writer.finish()


def decode_cooperative_user_data(data: bytes) -> int:
    """Decode the generation. Raise MalformedProtocolError if there is none."""
    return Reader(data).int32()
