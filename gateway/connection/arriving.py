"""What has come of requests that are not handled yet."""

from __future__ import annotations

import struct
from typing import Final

from gateway.connection.held_bytes import HeldBytes

_SIZE: Final = struct.Struct(">i")
FEW_BYTES: Final = 512


class Arriving:
    """The beginning of a frame, or whole frames that have to wait.

    ``have`` bytes are there of the ``need`` that make a frame, the first of which came at
    ``since``; of ``take`` the first ``done`` are handled.
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
        """Whether there is one request at most."""
        return self.have <= self.need

    @property
    def is_few(self) -> bool:
        """Whether there may be what a client says before it goes, and waits for no answer to: its
        commits, that it leaves."""
        return self.have <= FEW_BYTES or self.is_single

    def keep(self, data: bytes, pos: int, now: float, waits: bool) -> None:
        """Keep ``data[pos:]``; ``waits``: it may be many frames, the rest of which is read next."""
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
        """More has come."""
        if not self._chunks:
            self.keep(data, 0, now, waits=True)
            return
        self._chunks.append(data)
        self.have += len(data)
        self._held.requests += len(data)

    def take(self) -> bytes:
        """All of it, which is kept no more."""
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self.drop()
        return data

    def drop(self) -> None:
        """Keep nothing more."""
        self._held.requests -= self.have
        self._chunks.clear()
        self.have = 0

    def weigh(self, now: float) -> float:
        """How much is there for how long."""
        return 0.0 if self.since is None else self.have * (1 + now - self.since)
