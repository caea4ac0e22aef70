"""A process that writes to a store until it is killed, for crash tests.

``python -m tests.unit.storage.writer FOLDER PARTITIONS WRITES VALUE_SIZE [unmarked]`` writes, each
time, one record to each partition, a side record and what ``latest`` has of them; then it marks
them durable and prints their number. It ends itself with SIGKILL.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model.ids import LogPartition
from storage.rocks import rocks_opening, rocks_options
from tests.groups import CHECKOUT
from tests.support.storage.appends import make_append, mark_all


def main(folder: str, partitions: int, writes: int, value_size: int, mark: bool) -> None:
    # RocksDB starts a WAL file with each memtable: small memtables make many files.
    rocks_options._WRITE_BUFFER_SIZE = 4 << 20
    store = rocks_opening.open_store(folder, partitions=partitions)
    chance = random.Random(1)
    for number in range(writes):
        appends = [
            make_append(
                partition,
                store.next_offset(LogPartition(partition)),
                [(b"key-%d" % (number % 7), chance.randbytes(value_size))],
            )
            for partition in range(partitions)
        ]
        store.write(appends, [(b"side", b"%d" % number)])
        if mark:
            mark_all(store)
            sys.stdout.write(f"{number + 1}\n")
            sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def writing(
    folder: Path, *, partitions: int = 3, writes: int, value_size: int = 100, mark: bool = True
) -> Iterator[subprocess.Popen[str]]:
    """Run the writer during the block; it is killed at the end."""
    arguments = [str(folder), str(partitions), str(writes), str(value_size)]
    command = [sys.executable, "-m", "tests.unit.storage.writer", *arguments]
    with subprocess.Popen(
        command + ([] if mark else ["unmarked"]), cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def write_and_die(folder: Path, *, writes: int, value_size: int = 100, mark: bool = True) -> None:
    """Run the writer until it kills itself, which leaves a store as after a crash."""
    with writing(folder, writes=writes, value_size=value_size, mark=mark) as process:
        process.communicate()
        assert process.returncode == -signal.SIGKILL


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]), mark=len(sys.argv) == 5)
