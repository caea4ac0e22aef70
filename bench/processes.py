"""CPU time of other processes."""

from __future__ import annotations

import time


def read_cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process so far, also of those that have ended.

    The clock of the process counts nanoseconds, where /proc/PID/stat counts hundredths of a
    second, which is too coarse for a server that does nothing. Raises OSError without such a
    process.
    """
    return time.clock_gettime(~pid << 3 | 2)
