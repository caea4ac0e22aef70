"""Servers on a disk that fails on command: ``tests/faults/failing_disk.c`` under a real one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.kafka.prerequisites import MissingPrerequisite
from tests.server import MusterServer
from tests.support.wire.member import commit, connect, fetch_all

TOPIC = "orders"
GROUP = "g"
END_TIMEOUT_S = 30


def build_shim(folder: Path) -> Path:
    """The failing disk as a shared library. Raises where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise MissingPrerequisite("needs a C compiler: install gcc")
    source = Path(__file__).parents[1] / "faults" / "failing_disk.c"
    library = folder / "failing_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


class FaultyServer(MusterServer):
    """A server whose disk does as ``faults`` says; ``syncs`` tells what it made durable."""

    def __init__(self, folder: Path, shim: Path, settings: dict[str, object] | None = None) -> None:
        self.faults = folder / "faults"
        self.syncs = folder / "syncs"
        super().__init__(
            folder / "data",
            topics={TOPIC: 4},
            settings=settings or {},
            environment={
                "LD_PRELOAD": str(shim),
                "DISK_FAULTS": str(self.faults),
                "DISK_SYNCS": str(self.syncs),
            },
        )

    def fail(self, *faults: str) -> None:
        """These faults, and no others, from now on."""
        new = self.faults.with_suffix(".new")
        new.write_text("".join(f"{fault}\n" for fault in faults))
        new.replace(self.faults)

    def wait_for_end(self) -> int:
        """The exit code of a process that is to end by itself."""
        assert self.process is not None
        return self.process.wait(END_TIMEOUT_S)

    async def commit(self, offset: int, group_id: str = GROUP, partition: int = 0) -> int:
        """Commits one offset on a connection of its own; the error code.

        Raises ``OSError`` or ``EOFError`` where there is no answer.
        """
        async with await connect(self.address("kafka")) as client:
            return (await commit(client, group_id, TOPIC, {partition: offset}))[partition]

    async def fetch(self, group_id: str = GROUP) -> dict[int, int]:
        """The committed offsets of a group, by partition."""
        async with await connect(self.address("kafka")) as client:
            found = await fetch_all(client, group_id)
        return {partition: offset for (_, partition), offset in found.items()}
