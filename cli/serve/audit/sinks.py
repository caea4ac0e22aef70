"""Where the lines of the audit log go: a file that is rotated, or standard output.

A sink writes whole lines or raises ``OSError``: on a full disk no half line is left in the file.
Writes may take long, or for ever if nobody reads a pipe, so they are made by a thread of their own.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path
from typing import Final, Protocol

KEPT: Final = 10
"""Files that are kept beside the one that is written: ``audit.log.1``, the newest, to ``.10``."""
MODE: Final = 0o600
_STDOUT: Final = 1
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_POLL_S: Final = 1.0


class Sink(Protocol):
    """Takes lines."""

    def open(self) -> None:
        """Open it, before anything is written. Raises ``OSError``."""

    def look(self) -> None:
        """Follow a file that was moved away. Raises ``OSError``."""

    def write(self, line: bytes) -> None:
        """Write one line, whole. Raises ``OSError``, and has written nothing of it then."""

    def close(self) -> None:
        """Close it."""


class FileSink:
    """A file of at most ``max_bytes``; a longer line has a file of its own.

    A file that is moved away or deleted, as by logrotate, is opened anew under its name.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file = -1
        self._size = 0

    def open(self) -> None:
        # Not blocking: a pipe without a reader would block for ever.
        file = os.open(self._path, _FLAGS | os.O_NONBLOCK, MODE)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "it is no regular file", str(self._path))
        self.close()
        self._file, self._size = file, found.st_size

    def look(self) -> None:
        if self._file < 0:
            self.open()
            return
        own = os.fstat(self._file)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            self.open()
            return
        self._size = own.st_size
        if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino):
            self.open()

    def write(self, line: bytes) -> None:
        if self._size and self._size + len(line) > self._max_bytes:
            self._rotate()
        written = os.write(self._file, line)
        if written < len(line):
            # The disk is full, or the file has its largest size: take the half line back.
            os.ftruncate(self._file, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._size += written

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _rotate(self) -> None:
        """Number the files on, and begin a new one."""
        names = [self._path, *(Path(f"{self._path}.{number}") for number in range(1, KEPT + 1))]
        for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
            if newer.exists():
                newer.replace(older)
        self.open()


class StdoutSink:
    """Standard output, by its descriptor: whoever prints holds no lock that a full pipe keeps."""

    def __init__(self, descriptor: int = _STDOUT) -> None:
        self._descriptor = descriptor
        self._file = -1

    def open(self) -> None:
        self._file = os.dup(self._descriptor)

    def look(self) -> None:
        """It cannot be moved away."""

    def write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._file, left) :]
            except BlockingIOError:
                select.select([], [self._file], [], _POLL_S)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
