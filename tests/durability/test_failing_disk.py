"""A real server on a disk that fails: nobody is told of what is not durable, and it ends with 74.

A restart is the way back, and has all that was acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.errors import ExitCode
from tests.durability.servers import GROUP, FaultyServer, build_shim
from tests.durability.stores import find, flip_bit
from tests.groups import CHECKOUT
from tests.server import ServerNotStarted
from tests.support.waiting import until

LOG = "store/rocksdb/0"
"""Files of the write-ahead log, tables and blobs begin like this."""

FAULTS = [
    f"write EIO {LOG}",
    f"write ENOSPC {LOG}",
    f"sync EIO {LOG}",
    f"sync ENOSPC {LOG}",
    "write EIO store/watermark",
    "sync EIO store/watermark",
]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def server(tmp_path: Path, shim: Path) -> Iterator[FaultyServer]:
    with FaultyServer(tmp_path, shim) as running:
        yield running


async def test_a_disk_that_fails_ends_the_process_and_a_restart_serves(
    server: FaultyServer,
) -> None:
    """EIO and ENOSPC, on what is written and on the fsync, of the log and of the watermark."""
    durable = 1
    assert await server.commit(durable) == 0
    for fault in FAULTS:
        server.fail(fault)
        answered = await commit_until_it_ends(server, durable + 1)
        assert server.wait_for_end() == ExitCode.WRITE_FAILED, fault
        assert server.output().splitlines()[-1].startswith("muster: cannot write the log: "), fault
        # The watermark alone is synced at leisure, after answers.
        assert not answered or fault == "sync EIO store/watermark", fault
        server.fail()
        server.start()
        durable += answered
        stored = (await server.fetch())[0]
        assert durable <= stored <= durable + 1, fault
        durable = stored
        assert await server.commit(durable) == 0
    assert await server.fetch() == {0: durable}


async def commit_until_it_ends(server: FaultyServer, first: int) -> int:
    """Commits one offset after the other; how many were answered."""
    for count in range(10_000):
        try:
            code = await asyncio.wait_for(server.commit(first + count), 60)
        except (OSError, EOFError):
            return count
        assert code == 0, "an answer, and an error at that"
    raise AssertionError("it goes on")


async def test_a_power_cut_leaves_all_that_was_answered(server: FaultyServer) -> None:
    """``kill -9`` alone proves no fsync: here all that was not synced goes as well."""
    acknowledged: dict[str, int] = {}

    async def keep_committing(group_id: str) -> None:
        offset = 0
        while True:
            offset += 1
            try:
                code = await server.commit(offset, group_id)
            except (OSError, EOFError):
                return
            assert code == 0
            acknowledged[group_id] = offset

    running = [asyncio.create_task(keep_committing(f"group-{number}")) for number in range(8)]
    await until(
        lambda: len(acknowledged) == 8 and min(acknowledged.values()) >= 3,
        lambda: f"8 groups have 3 commits each: {acknowledged}",
        60,
    )
    server.kill()
    await asyncio.gather(*running)
    cut_bytes = cut_power(server)
    server.start()
    for group_id, offset in acknowledged.items():
        stored = (await server.fetch(group_id))[0]
        assert offset <= stored <= offset + 1, f"{group_id} (after {cut_bytes} bytes were lost)"


def cut_power(server: FaultyServer) -> int:
    """Takes from the log what was never synced; how much that was."""
    synced: dict[str, int] = {}
    for line in server.syncs.read_text().splitlines():
        size, path = line.split(" ", 1)
        synced[path] = max(int(size), synced.get(path, 0))
    lost = 0
    for log in (server.data_dir / "store" / "rocksdb").glob("*.log"):
        size = log.stat().st_size
        keep = min(synced.get(str(log), 0), size)
        os.truncate(log, keep)
        lost += size - keep
    return lost


async def test_a_damaged_table_is_told_in_a_line_at_the_start(server: FaultyServer) -> None:
    """The groups cannot be loaded: nothing is served, and nothing begun anew."""
    for number in range(200):
        assert await server.commit(number, f"group-{number}") == 0
    assert server.terminate() == 0
    server.start()
    assert server.terminate() == 0
    chance = random.Random(1)
    store = server.data_dir / "store"
    tables = find(store, "*.sst")
    for table in tables:
        for _ in range(20):
            flip_bit(table, chance.randrange(table.stat().st_size), chance.randrange(8))
    for _ in range(2):
        with pytest.raises(ServerNotStarted) as caught:
            server.start()
        assert caught.value.exit_code == ExitCode.FAILED
        assert "Traceback" not in caught.value.output
        assert "restore the data folder from a backup" in caught.value.output.splitlines()[-1]
    assert find(store, "*.sst") == tables


async def test_a_second_server_leaves_the_first_alone(server: FaultyServer) -> None:
    """Two processes on one folder: the second refuses, whatever the first is doing."""
    committing = asyncio.gather(*(server.commit(7, f"{GROUP}-{number}") for number in range(20)))
    done = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "cli", "serve", f"--data-dir={server.data_dir}"),
        *(f"--listen.{name}=127.0.0.1:0" for name in ("kafka", "grpc", "http")),
        cwd=CHECKOUT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(done.communicate(), 30)
    assert done.returncode == ExitCode.PRECONDITION
    assert f"in use by process {server.pid}" in errors.decode()
    assert set(await committing) == {0}
    assert await server.fetch(f"{GROUP}-3") == {0: 7}
