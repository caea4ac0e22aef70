"""What the process may take of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_GROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_SHARE: Final = 8
_LEAST_SHARE: Final = 64 * 1024 * 1024


def read_memory_bytes(limits: tuple[Path, ...] = _GROUP_LIMITS) -> int:
    """The machine's memory, or what its control group (a container) allows of it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in limits:
        try:
            text = limit.read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text):
            memory = min(memory, int(text))
    return memory


def compute_answers_max(asked: int, memory: int) -> int:
    """Bytes of answers that one door may hold: what was ``asked``, or (0) a share of the memory."""
    return asked or max(memory // _SHARE, _LEAST_SHARE)
