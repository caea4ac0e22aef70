"""Times Kafka's DumpLogSegments on a segment."""

from __future__ import annotations

import resource
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from tests.kafka.broker import LOG_CONFIG
from tests.kafka.jars import class_path, ensure_jars
from tests.kafka.prerequisites import check_java
from tests.kafka.tools import DUMP_LOG

_TIMEOUT_S = 300.0


class DumpRun(NamedTuple):
    """Wall-clock and CPU seconds."""

    seconds: float
    cpu_s: float


def measure_dump(segment: Path, small: Path) -> DumpRun:
    """The time to print every record of a segment, less that of a small segment.

    The JVM has its defaults except for a heap of 1 GiB; the output is discarded.
    """
    whole, start = _run(segment), _run(small)
    return DumpRun(whole.seconds - start.seconds, whole.cpu_s - start.cpu_s)


def _run(segment: Path) -> DumpRun:
    command = [
        check_java(),
        "-Xmx1g",
        f"-Dlog4j2.configurationFile={LOG_CONFIG}",
        "-cp",
        class_path(ensure_jars()),
        DUMP_LOG,
        "--offsets-decoder",
        "--print-data-log",
        "--files",
        str(segment),
    ]
    started, cpu_before = time.monotonic(), _read_cpu_s()
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=_TIMEOUT_S,
    )
    return DumpRun(time.monotonic() - started, _read_cpu_s() - cpu_before)


def _read_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
