"""Exchanges two folders atomically, so that readers always find one of them."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def exchange(one: Path, other: Path) -> bool:
    """Exchange the folders; false if the system or file system cannot.

    A folder cannot be renamed onto another, and between two renames there would be none.
    """
    libc = ctypes.CDLL(None)
    rename = getattr(libc, "renameat2", None)
    if rename is None:
        return False
    paths = os.fsencode(one.absolute()), os.fsencode(other.absolute())
    return bool(rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
