"""Describes the machine and the versions of a measurement."""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.figures import Json
from muster import __version__
from tests.kafka.jars import CHECKOUT, KAFKA_VERSION

PACKAGES = ("numpy", "uvloop", "rocksdict", "kio", "grpcio", "protobuf", "crc32c")
CORES = 2
"""Generator and server share this many cores, as the targets assume."""

_FSYNCS = 300
_BLOCK = bytes(4096)


def share_cores() -> int:
    """Restrict this process and its children to two cores if there are more."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) > CORES:
        os.sched_setaffinity(0, allowed[:CORES])
    return len(os.sched_getaffinity(0))


def forget_settings() -> None:
    """Remove settings from the environment: Muster is measured with its defaults."""
    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        del os.environ[name]


def describe_machine() -> Json:
    """CPU, memory, disk, kernel and versions, without a host name or a path."""
    fsync_ms = measure_fsync_ms(Path(tempfile.gettempdir()))
    memory = int(_find(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo")))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _find(r"model name\s*: (.*)", Path("/proc/cpuinfo")),
        "cores": os.cpu_count(),
        "cores_used": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**20, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "file_system": find_file_system(Path(tempfile.gettempdir())),
        "fsync_ms": fsync_ms,
        "load_before": round(os.getloadavg()[0], 2),
        "versions": describe_versions(),
    }


def describe_versions() -> dict[str, str]:
    """Versions of both sides, of what they run on, and of the generator's compiler."""
    versions = {"kafka": KAFKA_VERSION, "muster": describe_muster()}
    versions["java"] = _find(r'version "([^"]+)"', _run("java", "-version"))
    versions["go"] = _find(r"go(\d\S*)", _run("go", "version"))
    versions["python"] = platform.python_version()
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def describe_muster() -> str:
    """The version, and the commit if there is one."""
    commit = _run("git", "rev-parse", "--short", "HEAD").strip()
    if not commit:
        return __version__
    is_changed = bool(_run("git", "status", "--porcelain", "--untracked-files=no").strip())
    return f"{__version__} at {commit}" + (", with changes" if is_changed else "")


def measure_fsync_ms(folder: Path, count: int = _FSYNCS) -> dict[str, float]:
    """Milliseconds to append 4 KiB and make it durable."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(count):
            file.write(_BLOCK)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - started) * 1000)
    percentiles = statistics.quantiles(times, n=100)
    return {"p50": round(percentiles[49], 3), "p99": round(percentiles[98], 3)}


def find_file_system(folder: Path, mounts: str | None = None) -> str:
    """The type of a folder's file system, such as `ext4`."""
    if mounts is None:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    best, kind = "", "unknown"
    for line in mounts.splitlines():
        _, point, this_kind, *_ = line.split(" ")
        if folder.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, this_kind
    return kind


def _find(pattern: str, where: Path | str) -> str:
    try:
        text = where if isinstance(where, str) else where.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "unknown"
    match = re.search(pattern, text)
    return match.group(1).strip() if match else "unknown"


def _run(*command: str) -> str:
    """The output of a command on both streams; empty if it does not exist or fails."""
    try:
        done = subprocess.run(
            command, cwd=CHECKOUT, capture_output=True, text=True, timeout=30, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""
