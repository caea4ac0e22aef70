"""What is measured at each equal point, and how much of it may come in an hour."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.server import MusterServer
from tests.soak.census import Census, is_own, wait_for_census
from tests.soak.load.scrapes import count_series, get, read_metric

MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Measure:
    """``limit`` is by the hour, in ``unit``, of which a figure has ``scale``."""

    name: str
    limit: float
    unit: str = ""
    scale: float = 1.0


MEASURES: Final = (
    Measure("resident memory", 20, "MB", MB),
    Measure("memory of malloc", 20, "MB", MB),
    Measure("memory of RocksDB", 20, "MB", MB),
    Measure("malloc but for it", 20, "MB", MB),
    Measure("memory of objects", 20, "MB", MB),
    Measure("blocks of Python", 100_000),
    Measure("objects", 50_000),
    Measure("objects of our own", 5_000),
    Measure("garbage of our own", 5_000),
    Measure("descriptors", 30),
    Measure("tasks", 30),
    Measure("threads", 30),
    Measure("files", 60),
    Measure("bytes of files", 20, "MB", MB),
    Measure("series", 60),
)
"""An object has some 200 bytes, and with what it holds more: 20 MB are fewer than 100,000."""


@dataclass(frozen=True, slots=True)
class Point:
    """All figures at one time, in seconds since the beginning."""

    at_s: float
    figures: Mapping[str, float]
    census: Census
    cpu_s: float
    connections: int


class Gauge:
    """Measures one server."""

    def __init__(self, server: MusterServer, census: Path) -> None:
        self._server = server
        self._census = census
        self._number = 0
        self._began = time.monotonic()

    async def measure(self) -> Point:
        """All figures now; the census is taken last."""
        proc = Path(f"/proc/{self._server.pid}")
        metrics = await get(self._server.http, "/metrics")
        files = [path for path in self._server.data_dir.rglob("*") if path.is_file()]
        outside = {
            "resident memory": float(_read_resident_bytes(proc)),
            "descriptors": float(len(os.listdir(proc / "fd"))),
            "files": float(len(files)),
            "bytes of files": float(sum(_read_bytes(path) for path in files)),
            "series": float(count_series(metrics)),
        }
        census = await self._take_census()
        return Point(
            time.monotonic() - self._began,
            outside | _compute_figures(census),
            census,
            _read_cpu_s(proc),
            int(read_metric(metrics, "muster_kafka_connections")),
        )

    async def _take_census(self) -> Census:
        self._number += 1
        os.kill(self._server.pid, signal.SIGUSR1)
        return await wait_for_census(self._census, self._number)


def _compute_figures(census: Census) -> dict[str, float]:
    return {
        "memory of malloc": float(census.malloc_bytes),
        "memory of RocksDB": float(census.store_bytes),
        "malloc but for it": float(census.malloc_bytes - census.store_bytes),
        "memory of objects": float(census.object_bytes),
        "blocks of Python": float(census.blocks),
        "objects": float(sum(census.living.values())),
        "objects of our own": float(_sum_own(census.living)),
        "garbage of our own": float(_sum_own(census.garbage)),
        "tasks": float(census.tasks),
        "threads": float(census.threads),
    }


def _sum_own(counts: Mapping[str, int]) -> int:
    return sum(count for name, count in counts.items() if is_own(name))


def _read_resident_bytes(proc: Path) -> int:
    return int((proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _read_cpu_s(proc: Path) -> float:
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read_bytes(path: Path) -> int:
    """Allocated on the disk; 0 of one that has gone meanwhile."""
    try:
        return path.stat().st_blocks * 512
    except FileNotFoundError:
        return 0
