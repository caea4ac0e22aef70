"""The history worker processes of this process."""

from __future__ import annotations

import os
from pathlib import Path

WITHIN_S = 30.0
NEVER_ANSWERS = "'history_worker'; import time; time.sleep(600)"
"""A program in the place of the worker's."""
SLOW_WHILE_A_FILE_IS_THERE = """
import os, sys, time
from pathlib import Path
from coordinator.runtime.as_of import history_worker

slow, check = Path(os.environ["SLOW"]), history_worker.HistoryReader._check_wanted

def check_slowly(reader):
    check(reader)
    while slow.exists():
        slow.with_name("slow.reads").touch()
        time.sleep(0.01)
        check(reader)

history_worker.HistoryReader._check_wanted = check_slowly
history_worker.main(sys.argv[1])
"""
"""The worker, which reads no batch while the file named by ``SLOW`` exists."""


def children() -> set[int]:
    """The child processes that still exist."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == os.getpid() and b"history_worker" in read_command(folder):
                found.add(int(folder.name))
    return found


def read_command(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
