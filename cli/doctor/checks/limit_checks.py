"""What the system lets a process have: open files, memory, processors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject
from cli.serve.descriptors import (
    ConnectionLimits,
    TooFewDescriptors,
    compute_needed,
    compute_plan,
    describe_lowered,
)
from cli.settings import Resolved
from cli.settings.listeners.listener_rules import compute_listener_plan

_MIB: Final = 1 << 20
_MEMORY_LEAST: Final = 256 * _MIB
_MEMORY_ENOUGH: Final = 1_024 * _MIB
"""A server with 50,000 members has some 200 MiB, and reads the past in processes of their own."""
_MEMINFO: Final = Path("/proc/meminfo")
_GROUPS: Final = Path("/sys/fs/cgroup")


def check_limits(subject: Subject) -> Iterator[Finding]:
    """Open files and memory; of a server that runs the limits may be others."""
    yield describe_files(subject.resolved, _read_hard_limit())
    available = read_available_memory()
    if available is not None:
        yield describe_memory(available)
    processors = len(os.sched_getaffinity(0))
    if processors == 1:
        yield warn(
            "there is one processor",
            "give it two: one for the event loop, one for the disk and reads of the past",
        )
    else:
        yield ok(f"{processors} processors")


def _read_hard_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def describe_files(resolved: Resolved, hard: int) -> Finding:
    """Whether the hard limit of open files is enough for the connections that are set."""
    asked = ConnectionLimits(
        *(
            resolved.integer(name)
            for name in ("max.connections", "grpc.connections.max", "http.connections.max")
        )
    )
    files = resolved.integer("gateway.topics.open.files")
    listeners = len(compute_listener_plan(resolved.values).endpoints)
    needed = compute_needed(asked, files, listeners)
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return ok(f"{_show(hard)} open files are allowed, {needed} are needed")
    try:
        plan = compute_plan(hard, asked, files, listeners)
    except TooFewDescriptors as error:
        return fail(str(error), "LimitNOFILE= in the unit, or `ulimit -n`")
    lowered = describe_lowered(hard, asked, plan.limits)
    if lowered is None:
        return ok(
            f"{hard} open files are allowed, which is enough for the connections that are set"
        )
    return warn(lowered, f"allow {needed}: LimitNOFILE= in the unit, or `ulimit -n`")


def _show(limit: int) -> str:
    return "any number of" if limit == resource.RLIM_INFINITY else str(limit)


def describe_memory(available: int) -> Finding:
    """Whether that is enough for a server."""
    what = f"{available // _MIB} MiB of memory are to be had"
    if available < _MEMORY_LEAST:
        return fail(what, f"a server needs {_MEMORY_LEAST // _MIB} MiB at least")
    if available < _MEMORY_ENOUGH:
        return warn(what, "enough for a few thousand members (docs/operations.md, sizing)")
    return ok(what)


def read_available_memory(meminfo: Path = _MEMINFO, groups: Path = _GROUPS) -> int | None:
    """Bytes that this machine, or the control group of a container, still has to give."""
    found = [size for size in (_read_machine(meminfo), _read_group(groups)) if size is not None]
    return min(found, default=None)


def _read_machine(meminfo: Path) -> int | None:
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1_024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _read_group(groups: Path) -> int | None:
    """The limit less what is used, of the second version of control groups."""
    try:
        limit = (groups / "memory.max").read_text().strip()
        used = int((groups / "memory.current").read_text())
        return None if limit == "max" else max(int(limit) - used, 0)
    except (OSError, ValueError):
        return None
