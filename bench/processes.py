"""CPU time of other processes."""

from __future__ import annotations

import time


def read_cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process so far, including ended threads.

    The process's clock counts nanoseconds; /proc/PID/stat counts hundredths of a second, which is
    too coarse for an idle server. Raises OSError if there is no such process.
    """
    return time.clock_gettime(~pid << 3 | 2)
