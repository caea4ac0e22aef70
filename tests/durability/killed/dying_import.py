"""As ``tests.durability.killed.dying``: imports into copies of a store, killed in one call after
another.

``python -m tests.durability.killed.dying_import SEGMENTS STORE FOLDER FIRST STRIDE`` works in
FOLDER/n/store for every n from FIRST on in steps of STRIDE, until a child comes to its end alive,
and prints n.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from storage.segments.folder import open_segments
from storage.transfer.import_log import ImportOptions, import_segments
from tests.groups import CHECKOUT

CALLS_MAX = 2_000


def import_log(segments: Path, store: Path) -> None:
    options = ImportOptions(partitions=1)
    import_segments(open_segments(segments), store, options, lambda _: None)


def main(segments: Path, store: Path, folder: Path, first: int, stride: int) -> None:
    for number in range(first, CALLS_MAX, stride):
        target = folder / str(number) / "store"
        shutil.copytree(store, target)
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).disk_kill_after(ctypes.c_long(number))
            import_log(segments, target)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            assert status == 0, f"child {number} ended with {status}"
            print(number)
            return
    print(0)


def run(segments: Path, store: Path, folder: Path, shim: Path, first: int, stride: int) -> int:
    """Runs it; the first n that a child survived, 0 where none did."""
    arguments = [str(segments), str(store), str(folder), str(first), str(stride)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.durability.killed.dying_import", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "LD_PRELOAD": str(shim), "DISK_FOLDER": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=100,
    )
    return int(done.stdout)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), *map(int, sys.argv[4:]))
