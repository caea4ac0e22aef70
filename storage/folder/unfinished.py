"""Folders that are being made, or are only for a while: who dies within leaves none for good.

Each is locked by who has it. The next one that is made beside it removes those that nobody has any
more: a lock ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED_PREFIX = ".muster-unfinished-"
"""Of a backup or an export that has no name yet, beside where it will be."""


@contextmanager
def make_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder of one's own, that is gone at the end where it has not been renamed.

    Raises ``OSError``.
    """
    remove_abandoned(parent, prefix)
    folder, lock = _make_locked(parent, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Those folders that nobody has any more, as far as they may be removed."""
    for folder in sorted(parent.glob(f"{prefix}*")):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _make_locked(parent: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Somebody took it for abandoned before it was locked.
            continue
        with suppress(OSError):
            # Where folders cannot be locked (NFS) nobody can take it for abandoned either.
            fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)
