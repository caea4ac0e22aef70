"""Random-access bytes: of a file, or in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol


class ByteSource(Protocol):
    """``read`` returns fewer bytes than requested only at the end."""

    @property
    def size(self) -> int:
        """The number of bytes."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Read ``size`` bytes at ``position``."""
        ...


class BytesInMemory:
    """See ``ByteSource``."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, position: int, size: int) -> bytes:
        """See ``ByteSource``."""
        return self._data[position : position + size]


class BytesOfFile:
    """See ``ByteSource``; it does not see bytes that are appended later."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.size = os.fstat(handle).st_size

    def read(self, position: int, size: int) -> bytes:
        """See ``ByteSource``."""
        parts = []
        wanted = max(0, min(size, self.size - position))
        while wanted and (part := os.pread(self._handle, wanted, position)):
            parts.append(part)
            position += len(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


@contextmanager
def open_file(path: Path) -> Iterator[BytesOfFile]:
    """Open a file for reading. Raise ``OSError``."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield BytesOfFile(handle)
    finally:
        os.close(handle)
