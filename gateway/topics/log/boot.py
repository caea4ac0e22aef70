"""Whether the machine has run on since files were written, so that none of them lost anything.

What a process writes outlives its end, in the machine's memory; only the end of the machine takes
what was not fsynced. The kernel names each of its runs.
"""

from __future__ import annotations

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_boot_id(source: Path = _BOOT_ID) -> str:
    """The name of this run of the kernel; empty where it gives none."""
    try:
        return source.read_text().strip()
    except OSError:
        return ""


def is_same_boot(mark: Path, boot_id: str) -> bool:
    """Whether ``mark`` was written in the run ``boot_id``; never where that has no name."""
    try:
        return bool(boot_id) and mark.read_text() == boot_id
    except (OSError, UnicodeDecodeError):
        return False
