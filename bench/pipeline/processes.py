"""Memory and processor time of this process and of all that it started."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from pathlib import Path
from types import TracebackType

_PAUSE_S = 0.1
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT_FIELD, _USER_FIELD, _SYSTEM_FIELD, _RESIDENT_FIELD = 1, 11, 12, 1


class PeakMemory:
    """While entered: the most that all processes together had resident, in MiB."""

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            pages = sum(map(_read_resident_pages, _find_family(os.getpid())))
            self.peak_mib = max(self.peak_mib, pages * _PAGE_BYTES / 2**20)


def read_cpu_s() -> float:
    """Seconds that those processes that live took until now, user and system."""
    ticks = 0
    for process in _find_family(os.getpid()):
        fields = _read_fields(process)
        if fields:
            ticks += int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD])
    return ticks / _TICKS


def _read_fields(process: int) -> list[str]:
    """What is behind the name in a process's line; nothing once it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _find_family(root: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        fields = _read_fields(process)
        if fields:
            children[int(fields[_PARENT_FIELD])].append(process)
    family = [root]
    for process in family:
        family += children[process]
    return family


def _read_resident_pages(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[_RESIDENT_FIELD])
    except (OSError, IndexError):
        return 0
