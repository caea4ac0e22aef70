"""Reads frames from a broker: the sizes are checked, and what is no Kafka at all is recognised."""

from __future__ import annotations

import asyncio
from typing import Final

from gateway.codec.client_frames import SIZE_BYTES
from upstream.cluster.connections.opening_faults import OpeningFault, Trouble

_TLS_ALERT: Final = b"\x15\x03"


class BadFrame(OpeningFault):
    """The bytes are not a frame of Kafka's."""


async def read_frame(reader: asyncio.StreamReader, bytes_max: int) -> bytes | None:
    """The next frame, size included; ``None`` at the end. Raises ``BadFrame`` and ``OSError``."""
    try:
        head = await reader.readexactly(SIZE_BYTES)
        size = int.from_bytes(head, "big", signed=True)
        if not 4 <= size <= bytes_max:
            raise _describe(head, size)
        return head + await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            # An end within a frame is an end: nothing of the frame can be used.
            return None
        return None


def _describe(head: bytes, size: int) -> BadFrame:
    if head.startswith(_TLS_ALERT):
        return BadFrame(Trouble.TLS_WANTED, "it speaks TLS")
    if head == b"HTTP":
        return BadFrame(Trouble.NOT_KAFKA, "it is an HTTP server")
    return BadFrame(Trouble.NOT_KAFKA, f"it sent a frame with the size {size}")
