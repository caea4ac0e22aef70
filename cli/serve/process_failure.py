"""Ends the process of a server that cannot go on."""

from __future__ import annotations

import sys
from typing import NoReturn

from coordinator.runtime.commit.process_end import HalfApplied, exit_process


def end_process(failure: BaseException) -> NoReturn:
    """End the server; the last line on stderr says why."""
    exit_process(failure, _tell_end)


def _tell_end(failure: BaseException) -> None:
    line = f"cannot write the log: {failure}"
    if isinstance(failure, HalfApplied):
        line = f"a bug stopped a command after its first change: {failure.__cause__!r}"
    print(f"muster: {' '.join(line.split())}", file=sys.stderr, flush=True)
