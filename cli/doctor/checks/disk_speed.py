"""How long the disk takes to make a small write durable: each commit waits for that."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cli.doctor.checks.folder_checks import find_nearest
from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject

_APPEND: Final = b"\0" * 4_096
_COUNT: Final = 200
_TIME_S: Final = 2.0
_SLOW_S: Final = 0.010
"""Of half of the syncs. Spinning disks and busy network disks take that long."""
_STALL_S: Final = 0.200
"""A sync among the slowest that clients notice."""
_UNBELIEVABLE_S: Final = 0.000_010
"""No disk is as quick: nothing was made durable."""


def check_disk_speed(subject: Subject) -> Iterator[Finding]:
    """Measured in the data folder, on a file without a name."""
    folder = find_nearest(subject.folder.path)
    try:
        times_s = measure_syncs(folder)
    except OSError as error:
        yield fail(f"{folder} cannot be written to: {error.strerror}", "see the data folder above")
        return
    yield describe_syncs(times_s)


def measure_syncs(folder: Path, count: int = _COUNT, time_s: float = _TIME_S) -> list[float]:
    """Seconds of each append and fdatasync, at most ``count``, for about ``time_s``; sorted.

    The file is without a name from the beginning, so that nothing is left behind by a kill either.
    Raises ``OSError``.
    """
    times_s: list[float] = []
    with tempfile.TemporaryFile(dir=folder, prefix=".muster-doctor-", buffering=0) as file:
        end_s = time.monotonic() + time_s
        while len(times_s) < count and (not times_s or time.monotonic() < end_s):
            began_s = time.perf_counter()
            file.write(_APPEND)
            os.fdatasync(file.fileno())
            times_s.append(time.perf_counter() - began_s)
    return sorted(times_s)


def describe_syncs(times_s: list[float]) -> Finding:
    """What the times mean. ``times_s`` is sorted and has at least one."""
    half, slow = times_s[len(times_s) // 2], times_s[len(times_s) * 99 // 100]
    what = (
        f"a sync takes {half * 1e3:.2f} ms, of 100 one takes {slow * 1e3:.2f} ms: a client that "
        f"waits for each commit makes about {min(1 / half, 1e6):,.0f} in a second"
    )
    if half < _UNBELIEVABLE_S:
        return warn(
            f"{what}; no disk is as quick, so nothing was made durable",
            "use a disk that syncs: what was acknowledged would be lost with the power",
        )
    if half > _SLOW_S or slow > _STALL_S:
        return warn(what, "use an SSD, or a disk that others do not write to")
    return ok(what)
