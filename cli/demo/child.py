"""Runs a module of the demo in a process that does not outlive the demo.

    python -m cli.demo.child MODULE [ARGUMENT...]

The new process asks for it itself: between fork and exec nothing may run in a process that uses
gRPC.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Be killed when the process that started this one is gone. Does nothing off Linux."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        # It was gone before it could be asked for.
        sys.exit(1)


if __name__ == "__main__":
    die_with_parent()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
