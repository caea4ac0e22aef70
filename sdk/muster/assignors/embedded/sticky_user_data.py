"""The user data of `sticky` and `cooperative-sticky`: what a member owned, and since when.

`sticky` members revoke everything before they join, so they say what they owned in their user
data: version 0 the partitions alone (KIP-54), version 1 the generation as well (KIP-341). The
bytes do not tell their version: who knows version 1 tries that first, and who knows only version 0
reads the front of version 1 and leaves the rest. `cooperative-sticky` members say what they own in
the subscription, and the generation here, for leaders that know subscriptions only up to
version 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.assignors.embedded.consumer_protocol import NO_GENERATION
from muster.assignors.embedded.fields import MalformedProtocolError, Reader, TopicPartitions, Writer


@dataclass(frozen=True, slots=True)
class StickyUserData:
    """``generation`` is NO_GENERATION where the member did not say one."""

    partitions: tuple[TopicPartitions, ...]
    generation: int = NO_GENERATION


def encode_sticky_user_data(user_data: StickyUserData, version: int = 1) -> bytes:
    """Raises MalformedProtocolError for an unknown version and for values that do not fit."""
    if version not in (0, 1):
        raise MalformedProtocolError(f"version {version} of sticky user data is not in 0..1")
    writer = Writer()
    writer.topics_partitions(user_data.partitions)
    if version == 1:
        writer.int32(user_data.generation)
    return writer.finish()


def decode_sticky_user_data(data: bytes, highest_version: int = 1) -> StickyUserData:
    """What a reader makes of it that knows versions up to ``highest_version``.

    Bytes that end before the generation are version 0. Raises MalformedProtocolError for bytes
    that are neither.
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
    """Raises MalformedProtocolError for a generation that is no 32-bit integer."""
    writer = Writer()
    writer.int32(generation)
    return writer.finish()


def decode_cooperative_user_data(data: bytes) -> int:
    """The generation. Raises MalformedProtocolError for bytes that hold none."""
    return Reader(data).int32()
