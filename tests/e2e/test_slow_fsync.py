"""An fsync that takes 200 ms: no commit is answered earlier, and heartbeats do not wait for it."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.prerequisites import MissingPrerequisite
from tests.server import MusterServer
from tests.support.waiting import until
from tests.support.wire import fields
from tests.support.wire.member import HEARTBEAT, commit, connect

DELAY_MS = 200
COMMITS = 12
HEARTBEATS = 5
"""So many at least are answered during a commit: one, or two, where they wait for the disk."""
TOPIC = "orders"


def build_shim(folder: Path) -> Path:
    """The shim as a shared library. Raises where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise MissingPrerequisite("needs a C compiler: install gcc")
    source = Path(__file__).parents[1] / "faults" / "slow_fsync.c"
    library = folder / "slow_fsync.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    environment = {
        "LD_PRELOAD": str(build_shim(tmp_path)),
        "FSYNC_DELAY_MS": str(DELAY_MS),
    }
    with MusterServer(
        tmp_path / "data",
        topics={TOPIC: 2},
        settings={"gateway.park.ms": 0},
        environment=environment,
    ) as running:
        yield running


class Beats:
    """How many heartbeats have been answered."""

    def __init__(self) -> None:
        self.count = 0


async def commit_times(
    address: tuple[str, int], group_id: str, beats: Beats
) -> list[tuple[float, int]]:
    """How long each commit took, in seconds, and how many heartbeats were answered meanwhile."""
    loop = asyncio.get_running_loop()
    times = []
    async with await connect(address) as client:
        for offset in range(COMMITS):
            began, before = loop.time(), beats.count
            errors = await commit(client, group_id, TOPIC, {0: offset})
            times.append((loop.time() - began, beats.count - before))
            assert errors == {0: 0}
    return times


async def beat(address: tuple[str, int], beats: Beats) -> None:
    """Heartbeats that write nothing, one after the other."""
    async with await connect(address) as client:
        joined = await client.ask(HEARTBEAT, 1, **fields.join("beating", "m", (TOPIC,)))
        assert not joined.error_code, joined
        said = fields.beat("beating", "m", joined.member_epoch)
        while True:
            response = await client.ask(HEARTBEAT, 1, **said)
            assert not response.error_code, response
            beats.count += 1


@pytest.mark.alone
async def test_no_answer_before_the_fsync_and_no_heartbeat_behind_it(server: MusterServer) -> None:
    address = server.address("kafka")
    beats = Beats()
    async with asyncio.TaskGroup() as group:
        beating = group.create_task(beat(address, beats))
        await until(lambda: beats.count > 0, "the member is in its group", 30)
        committed = await asyncio.gather(
            *(commit_times(address, f"group-{n}", beats) for n in range(4))
        )
        beating.cancel()
    rows = [row for rows in committed for row in rows]
    fastest_s = min(took_s for took_s, _ in rows)
    assert fastest_s >= DELAY_MS / 1000, f"a commit was answered after {fastest_s * 1000:.1f} ms"
    # Counted, and of the usual commit: a machine that is slow is so for both.
    assert statistics.median(count for _, count in rows) >= HEARTBEATS, rows
