"""The received bytes of a connection that are not handled yet."""

from __future__ import annotations

import struct
from typing import Final

from gateway.connection.held_bytes import HeldBytes

_SIZE: Final = struct.Struct(">i")
FEW_BYTES: Final = 512


class Arriving:
    """A buffer of a partial frame, or of whole frames that have to wait.

    ``have`` bytes are buffered of the ``need`` that complete the first frame. Its first byte
    arrived at ``since``. The first ``done`` bytes that ``take`` returns are handled already.
    """

    __slots__ = ("_chunks", "_held", "done", "have", "need", "since")

    def __init__(self, held: HeldBytes) -> None:
        self._held = held
        self._chunks: list[bytes] = []
        self.done = 0
        self.have = 0
        self.need = 0
        self.since: float | None = None

    @property
    def is_single(self) -> bool:
        """Whether the buffer holds at most one request."""
        return self.have <= self.need

    @property
    def is_few(self) -> bool:
        """Whether this may be a closing client's last requests, which must still be handled: it
        commits and leaves without waiting for the responses."""
        return self.have <= FEW_BYTES or self.is_single

    def keep(self, data: bytes, pos: int, now: float, waits: bool) -> None:
        """Buffer ``data[pos:]``; ``waits``: whole frames may follow, so do not copy to drop
        the handled bytes."""
        if pos and not waits:
            data, pos = data[pos:], 0
        self._chunks.append(data)
        self.done = pos
        self.have = len(data) - pos
        self._held.requests += self.have
        self.need = 4 + _SIZE.unpack_from(data, pos)[0] if self.have >= 4 else 4
        if self.since is None:
            self.since = now

    def add(self, data: bytes, now: float) -> None:
        """Buffer more received bytes."""
        if not self._chunks:
            self.keep(data, 0, now, waits=True)
            return
        last = self._chunks[-1]
        if len(data) < FEW_BYTES and len(last) < FEW_BYTES:
            # Each piece of a byte would take forty.
            self._chunks[-1] = last + data
        else:
            self._chunks.append(data)
        self.have += len(data)
        self._held.requests += len(data)

    def take(self) -> bytes:
        """Empty the buffer and return its bytes."""
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self.drop()
        return data

    def drop(self) -> None:
        """Empty the buffer."""
        self._held.requests -= self.have
        self._chunks.clear()
        self.have = 0

    def weigh(self, now: float) -> float:
        """The buffered bytes, weighted by the age of the first."""
        return 0.0 if self.since is None else self.have * (1 + now - self.since)
