"""A disk that fills up under a running server, and empties again: a small tmpfs of its own.

Where mounting is not allowed the room is what ``statvfs`` is made to say.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import httpx
import pytest

from model.errors import ErrorCode
from tests.durability.servers import TOPIC, FaultyServer, build_shim
from tests.support.waiting import Patience, until, until_answered
from tests.support.wire import fields
from tests.support.wire.connection import Connection
from tests.support.wire.member import HEARTBEAT, connect

MIB = 1 << 20
DISK_BYTES = 192 * MIB
SETTINGS: dict[str, object] = {"log.min.free.bytes": 16 * MIB, "log.reserve.bytes": 8 * MIB}
DEADLINE_S = 20


class Disk(Protocol):
    """What others use of the disk that the server is on."""

    def fill(self, free_bytes: int) -> None: ...


class Tmpfs:
    """A file system in memory, filled with a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.filler = folder / "filler"

    def fill(self, free_bytes: int) -> None:
        """Leaves so many bytes free."""
        self.filler.unlink(missing_ok=True)
        found = subprocess.check_output(["df", "-B1", "--output=avail", self.folder], text=True)
        size = int(found.splitlines()[-1]) - free_bytes
        if size > 0:
            subprocess.run(["fallocate", "-l", str(size), self.filler], check=True)


class ToldDisk:
    """``statvfs`` says what there is."""

    def __init__(self, server: FaultyServer) -> None:
        self.server = server

    def fill(self, free_bytes: int) -> None:
        """As if so many bytes were free."""
        self.server.fail(f"free {free_bytes}")


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path | None]:
    """A small file system of its own; ``None`` where it cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "muster-test"]
    done = subprocess.run(["mount", *options, folder], capture_output=True, check=False)
    if done.returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def place(tmp_path: Path, mounted: Path | None) -> Iterator[tuple[FaultyServer, Disk]]:
    folder = tmp_path if mounted is None else mounted
    with FaultyServer(folder, build_shim(tmp_path), SETTINGS) as server:
        yield server, ToldDisk(server) if mounted is None else Tmpfs(folder)


async def join(client: Connection) -> int:
    """Joins as the only member and takes what it gets; the epoch."""
    joined = await client.ask(HEARTBEAT, 1, **fields.join("h", "m", (TOPIC,)))
    assert not joined.error_code, joined
    epoch: int = joined.member_epoch
    return epoch


async def read_metric(server: FaultyServer, name: str) -> float:
    """The value of a metric without labels."""
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"http://{server.http}/metrics")).text
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split(" ")[1])


async def wait_for_commit(server: FaultyServer, code: ErrorCode, offset: int) -> None:
    """Until a commit is answered with this code."""
    await until_answered(
        lambda: server.commit(offset),
        lambda found: found == code,
        f"a commit is answered {code!r}",
        patience=Patience(DEADLINE_S),
        pause_s=0.1,
    )


def size_of(path: Path) -> int | None:
    """The size of a file; ``None`` where there is none."""
    return path.stat().st_size if path.exists() else None


async def wait_for_size(path: Path, size: object) -> None:
    """Until the file is there as large as that."""
    await until(
        lambda: size_of(path) == size,
        lambda: f"{path} has {size} bytes, not {size_of(path)}",
        DEADLINE_S,
        pause_s=0.02,
    )


async def test_a_full_disk_refuses_what_writes_serves_the_rest_and_comes_back(
    place: tuple[FaultyServer, Disk],
) -> None:
    server, disk = place
    reserve = server.data_dir / "reserve"
    member = await connect(server.address("kafka"))
    epoch = await join(member)
    assert await server.commit(1) == 0
    assert size_of(reserve) == SETTINGS["log.reserve.bytes"]
    pid = server.pid

    disk.fill(4 * MIB)
    await wait_for_commit(server, ErrorCode.COORDINATOR_NOT_AVAILABLE, 2)
    for _ in range(3):
        assert await server.commit(3) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        response = await member.ask(HEARTBEAT, 1, **fields.beat("h", "m", epoch))
        assert not response.error_code
    assert size_of(reserve) is None, "less is free than it holds: it is given up"
    stranger = await connect(server.address("kafka"))
    refused = await stranger.ask(HEARTBEAT, 1, **fields.join("h", "n", (TOPIC,)))
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    stored = (await server.fetch())[0]
    assert stored in (1, 2)
    assert await read_metric(server, "muster_log_writes_refused_total") >= 5

    disk.fill(DISK_BYTES)
    await wait_for_commit(server, ErrorCode.NONE, 4)
    assert await server.fetch() == {0: 4}
    await wait_for_size(reserve, SETTINGS["log.reserve.bytes"])
    response = await member.ask(HEARTBEAT, 1, **fields.beat("h", "m", epoch))
    assert (response.error_code, response.member_epoch) == (0, epoch)
    assert server.pid == pid
    member.close()
    stranger.close()


async def test_a_start_on_a_full_disk_serves_what_does_not_write(
    place: tuple[FaultyServer, Disk],
) -> None:
    server, disk = place
    assert await server.commit(1) == 0
    server.kill()
    disk.fill(0)
    server.start()
    assert await server.fetch() == {0: 1}
    assert await server.commit(2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    disk.fill(DISK_BYTES)
    await wait_for_commit(server, ErrorCode.NONE, 3)
