"""What the C library keeps of freed memory is given back to the system.

Requests and answers that are held for slow clients lie between what lives on, and glibc gives back
the end of its heap alone: after an attack of half-sent requests hundreds of megabytes stayed with
the process. ``malloc_trim`` finds whole pages anywhere. It is called when the process has grown
since the last time, or more of it is free than was then; in a thread, for it may take longer than
the loop may stand still. Where the C library has none of it, nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

FREE_BYTES: Final = 32 << 20
"""As much is kept: it is soon used again."""
INTERVAL_S: Final = 2.0
"""Rarely, for an idle server is to stay idle."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = Path("/proc/self/statm")


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


class FreeMemory:
    """Gives memory back from time to time; made once a process."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._trim, self._count_free = _find_calls()
        self._resident = read_resident_bytes() if _STATM.exists() else 0
        self._free = 0

    def start(self) -> None:
        """Begins, in a thread of its own."""
        if self._trim is not None and _STATM.exists():
            threading.Thread(target=self._run, name="free-memory", daemon=True).start()

    def stop(self) -> None:
        """The thread ends soon."""
        self._stopped.set()

    def give_back(self) -> bool:
        """Gives back what is free if that is much; whether it was."""
        assert self._trim is not None
        assert self._count_free is not None
        resident, free = read_resident_bytes(), self._count_free()
        self._resident = min(self._resident, resident)
        self._free = min(self._free, free)
        if free < FREE_BYTES or max(resident - self._resident, free - self._free) < FREE_BYTES:
            return False
        self._trim(0)
        # What was given back is free as well, and still counted as such.
        self._resident, self._free = read_resident_bytes(), self._count_free()
        return True

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            self.give_back()


def read_resident_bytes() -> int:
    """Memory of this process that is in use."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES


def _find_calls() -> tuple[Callable[[int], int] | None, Callable[[], int] | None]:
    """``malloc_trim`` and a count of what is free, where the C library is glibc 2.33 or newer."""
    library = ctypes.CDLL(None)
    try:
        trim, describe = library.malloc_trim, library.mallinfo2
    except AttributeError:
        return None, None
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    describe.argtypes, describe.restype = (), _Mallinfo2
    return trim, lambda: int(describe().fordblks)
