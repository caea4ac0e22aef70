"""Detects whether the machine has rebooted since the store's files were written.

Data that a process wrote survives the process in the page cache; only a crash or power failure of
the machine loses what was not fsynced. The kernel gives each boot an id.
"""

from __future__ import annotations

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_boot_id(source: Path = _BOOT_ID) -> str:
    """The kernel's boot id; empty if there is none."""
    try:
        return source.read_text().strip()
    except OSError:
        return ""


def is_same_boot(mark: Path, boot_id: str) -> bool:
    """Whether the file ``mark`` has this ``boot_id``; ``False`` if the id is unknown."""
    try:
        return bool(boot_id) and mark.read_text() == boot_id
    except (OSError, UnicodeDecodeError):
        return False
