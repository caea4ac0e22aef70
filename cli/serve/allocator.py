"""Returns free memory of the C library to the system.

Requests and answers held for slow clients lie between long-lived objects, and glibc returns only
the end of its heap: after an attack of half-sent requests the process kept hundreds of megabytes.
``malloc_trim`` returns whole free pages anywhere in the heap. It is called when the process, or
its free memory, has grown since the last call; in a thread, because it can take longer than the
event loop may be blocked. On other C libraries this module does nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

FREE_BYTES: Final = 32 << 20
"""Growth, and free memory, below which nothing is returned: it will soon be used again."""
INTERVAL_S: Final = 2.0
"""Long, so that an idle server stays idle."""
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
    """Returns free memory periodically; one instance per process."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._trim, self._count_free = _find_calls()
        self._resident = read_resident_bytes() if _STATM.exists() else 0
        self._free = 0

    def start(self) -> None:
        """Start the background thread."""
        if self._trim is not None and _STATM.exists():
            threading.Thread(target=self._run, name="free-memory", daemon=True).start()

    def stop(self) -> None:
        """Ask the thread to end."""
        self._stopped.set()

    def give_back(self) -> bool:
        """Return free memory if there is enough of it; whether it did."""
        assert self._trim is not None
        assert self._count_free is not None
        resident, free = read_resident_bytes(), self._count_free()
        self._resident = min(self._resident, resident)
        self._free = min(self._free, free)
        if free < FREE_BYTES or max(resident - self._resident, free - self._free) < FREE_BYTES:
            return False
        self._trim(0)
        # Memory returned to the system still counts as free.
        self._resident, self._free = read_resident_bytes(), self._count_free()
        return True

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            self.give_back()


def read_resident_bytes() -> int:
    """Resident memory of this process, in bytes."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES


def _find_calls() -> tuple[Callable[[int], int] | None, Callable[[], int] | None]:
    """``malloc_trim`` and a counter of free bytes; ``None`` before glibc 2.33 and elsewhere."""
    library = ctypes.CDLL(None)
    try:
        trim, describe = library.malloc_trim, library.mallinfo2
    except AttributeError:
        return None, None
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    describe.argtypes, describe.restype = (), _Mallinfo2
    return trim, lambda: int(describe().fordblks)
