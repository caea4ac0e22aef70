"""How much of the machine's memory the process may use."""

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
    """The machine's memory, or the limit of its control group (container) if that is lower."""
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
    """Bytes of responses that one front end may hold: ``asked``, or a share of ``memory`` if 0."""
    return asked or max(memory // _SHARE, _LEAST_SHARE)
