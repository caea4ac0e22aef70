"""How the CPU time of a case is measured and profiled."""

from __future__ import annotations

import cProfile
import os
import pstats
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.kafka.jars import CHECKOUT

ROUNDS = 5
STEADY_ROUNDS = 60
"""Rounds of what is cheap and changes nothing."""

ENOUGH_S = 1.5
"""After this much CPU time no further round begins."""

BATCH = 500
"""Cheap requests per round."""

PROFILE_LINES = 6
PROFILE_SHARE = 0.03


@dataclass(frozen=True, slots=True)
class Figure:
    """A point that is measured otherwise: µs of CPU, or bytes."""

    series: str
    value: float


@dataclass(frozen=True, slots=True)
class Case:
    """One point of a series: `work` does it, and returns how many operations that were.

    `prepare` runs before every round, untimed.
    """

    series: str
    work: Callable[[], int]
    prepare: Callable[[], None] | None = None
    rounds: int = ROUNDS


def time_case(case: Case) -> float:
    """The least CPU time of an operation in µs: other load on the machine only adds to it."""
    least, spent_s = float("inf"), 0.0
    for _ in range(case.rounds):
        if case.prepare is not None:
            case.prepare()
        began_s = time.process_time()
        count = case.work()
        took_s = time.process_time() - began_s
        least = min(least, took_s / count * 1e6)
        spent_s += took_s
        if spent_s > ENOUGH_S:
            break
    return least


def profile_case(case: Case) -> list[str]:
    """The functions with the most time of their own in a round, with their share of it."""
    if case.rounds > 1:
        # What the first round alone does, such as imports, is not profiled.
        time_case(replace(case, rounds=1))
    if case.prepare is not None:
        case.prepare()
    profiler = cProfile.Profile()
    profiler.runcall(case.work)
    # By (file, line, name): many have the same name.
    stats: Any = pstats.Stats(profiler)
    own = {function: row[2] for function, row in stats.stats.items()}
    total = sum(own.values()) or 1.0
    return [
        f"{own[function] / total:.0%} {function[2]} ({_find_module(function[0])})"
        for function in sorted(own, key=lambda function: -own[function])[:PROFILE_LINES]
        if own[function] / total >= PROFILE_SHARE
    ]


def _find_module(path: str) -> str:
    """A path below the checkout; another file by its name alone."""
    if path == "~":
        return "C"
    file = Path(path)
    return str(file.relative_to(CHECKOUT)) if file.is_relative_to(CHECKOUT) else file.name


def read_cpu_us(pid: int) -> float:
    """User and system time of a process, all threads, in steps of a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1e6


def read_memory_bytes(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) * 1024.0
