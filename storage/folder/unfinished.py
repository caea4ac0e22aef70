"""Temporary folders that do not outlive a crash of their process for long.

The owner holds a lock on its folder, and the lock ends with the process. Each new folder removes
the abandoned ones beside it, which are no longer locked.
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
"""Prefix of the temporary folder of a backup or export, beside its target."""


@contextmanager
def make_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Create a locked temporary folder, removed at the end of the block unless it was renamed.

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
    """Remove the folders whose owner has died, ignoring those that cannot be removed."""
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
            # Another process took it for abandoned before it was locked.
            continue
        with suppress(OSError):
            # If folders cannot be locked (NFS), no other process can take it for abandoned.
            fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)
