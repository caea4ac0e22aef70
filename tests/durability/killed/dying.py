"""A process whose children die in the n-th call that changes a file, for every n.

``python -m tests.durability.killed.dying JOB FOLDER``, under ``tests/faults/failing_disk.c``, with
DISK_FOLDER set to FOLDER/. It forks a child for each n until one comes to its end alive, and
prints n. A child works in FOLDER/n; ``write`` makes a store and writes to it, noting beside FOLDER
what was acknowledged, and ``open`` opens the store that is there, if there is one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

from storage.rocks.rocks_opening import open_store
from tests.durability.stores import PARTITIONS
from tests.groups import CHECKOUT
from tests.support.storage.appends import append, mark_all, write_checkpoint

WRITES = 6
CALLS_MAX = 2_000


def write(folder: Path, told: Path) -> None:
    """Makes a store and writes to it; says of each write when it was acknowledged."""
    store = open_store(folder, partitions=PARTITIONS, cluster_id="C" * 22)
    for number in range(WRITES):
        value = b"%d" % number
        append(store, {partition: [(b"key", value)] for partition in range(PARTITIONS)})
        store.write([], [(b"side", value)])
        mark_all(store)
        if number % 2:
            store.sync_watermark()
        if number % 3 == 1:
            # A step for each key, so that a kill falls between any two.
            write_checkpoint(store, 1)
        told.write_text(f"{number + 1}\n")
    store.close()


def run_child(job: str, folder: Path, number: int) -> bool:
    """Whether the child came to its end alive; raises where it died of anything else."""
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).disk_kill_after(ctypes.c_long(number))
        if job == "write":
            write(folder / str(number), folder.with_name(f"{folder.name}.told.{number}"))
        else:
            open_store(folder / str(number), partitions=PARTITIONS).close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    assert status == 0, f"child {number} ended with {status}"
    return True


def main(job: str, folder: Path) -> None:
    for number in range(1, CALLS_MAX):
        if job == "open" and not (folder / str(number)).exists():
            continue
        if run_child(job, folder, number):
            print(number)
            return
    print(0)


def run(job: str, folder: Path, shim: Path) -> int:
    """Runs it; the first n that a child survived, 0 where none did."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.durability.killed.dying", job, str(folder)],
        cwd=CHECKOUT,
        env={**os.environ, "LD_PRELOAD": str(shim), "DISK_FOLDER": f"{folder}/"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=100,
    )
    return int(done.stdout)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
