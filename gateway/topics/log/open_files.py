"""An LRU cache of the topic store's open files."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path


class OpenFiles:
    """At most ``limit`` file descriptors by path; each is valid until the next call."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: OrderedDict[Path, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, path: Path) -> int:
        """A descriptor to read and write an existing file.

        Raises ``FileNotFoundError``: a read must not recreate a deleted file.
        """
        descriptor = self._open.get(path)
        if descriptor is not None:
            self._open.move_to_end(path)
            return descriptor
        return self._add(path, 0)

    def create(self, path: Path) -> None:
        """Create the file if it does not exist. Raises ``OSError``."""
        if path not in self._open:
            self._add(path, os.O_CREAT)

    def forget(self, path: Path) -> None:
        """Close the file if it is open."""
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        """Close all files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _add(self, path: Path, flags: int) -> int:
        while len(self._open) >= self._limit:
            os.close(self._open.popitem(last=False)[1])
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
        self._open[path] = descriptor
        return descriptor


def write_at(descriptor: int, data: bytes, position: int) -> None:
    """Write all of ``data`` at ``position``; raises ``OSError``."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, position)
        view = view[written:]
        position += written


def write_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: a reader sees the old content or the new, also after a crash."""
    draft = path.with_name(path.name + ".tmp")
    with draft.open("wb") as file:
        file.write(data)
    draft.replace(path)
