"""Memory and CPU time of this process and its descendants."""

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
    """Measures the peak resident memory of all these processes together while entered, in MiB.

    ``cpu_s`` is their CPU time, including processes that have ended, as of their last sample.
    """

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._ticks: dict[int, int] = {}
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

    @property
    def cpu_s(self) -> float:
        """User and system time, without this process."""
        return sum(self._ticks.values()) / _TICKS

    def _watch(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            family = find_family(os.getpid())
            pages = sum(map(_read_resident_pages, family))
            self.peak_mib = max(self.peak_mib, pages * _PAGE_BYTES / 2**20)
            for process in family[1:]:
                self._ticks[process] = max(_read_ticks(process), self._ticks.get(process, 0))


def read_cpu_s() -> float:
    """User and system seconds of the processes alive now."""
    return sum(map(_read_ticks, find_family(os.getpid()))) / _TICKS


def _read_ticks(process: int) -> int:
    fields = _read_fields(process)
    return int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD]) if fields else 0


def _read_fields(process: int) -> list[str]:
    """The fields of a process's stat line after its name; empty once it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def find_family(root: int) -> list[int]:
    """A process and all its descendants."""
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
