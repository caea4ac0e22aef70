"""An fsync that takes 200 ms: no commit is answered earlier, and heartbeats do not wait for it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.wire_client import HeartbeatResponse, WireClient, commit, heartbeat
from tests.kafka.prerequisites import MissingPrerequisite
from tests.server import MusterServer

DELAY_MS = 200
COMMITS = 12
HEARTBEATS = 3_000
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


async def commit_times(address: tuple[str, int], group_id: str) -> list[float]:
    """How long each commit took, in seconds."""
    loop = asyncio.get_running_loop()
    client = WireClient(*address)
    await client.connect()
    times = []
    for offset in range(COMMITS):
        began = loop.time()
        errors = await commit(client, group_id, TOPIC, {0: offset})
        times.append(loop.time() - began)
        assert errors == {0: 0}
    await client.close()
    return times


async def heartbeat_times(address: tuple[str, int], until: asyncio.Event) -> list[float]:
    """How long each of many heartbeats took that write nothing, while commits are under way."""
    loop = asyncio.get_running_loop()
    client = WireClient(*address)
    await client.connect()
    joined = await client.send(
        heartbeat("beating", "m", 0, topics=[TOPIC], owned={}, rebalance_timeout_ms=30_000),
        HeartbeatResponse,
    )
    assert not int(joined.error_code), joined
    epoch = int(joined.member_epoch)
    times = []
    while not until.is_set() or len(times) < HEARTBEATS:
        began = loop.time()
        response = await client.send(heartbeat("beating", "m", epoch), HeartbeatResponse)
        times.append(loop.time() - began)
        assert not int(response.error_code), response
    await client.close()
    return times


@pytest.mark.alone
async def test_no_answer_before_the_fsync_and_no_heartbeat_behind_it(server: MusterServer) -> None:
    address = server.address("kafka")
    done = asyncio.Event()
    beating = asyncio.create_task(heartbeat_times(address, done))
    committed = await asyncio.gather(*(commit_times(address, f"group-{n}") for n in range(4)))
    done.set()
    beats = sorted(await beating)
    fastest = min(min(times) for times in committed)
    assert fastest >= DELAY_MS / 1000, f"a commit was answered after {fastest * 1000:.1f} ms"
    p99 = beats[len(beats) * 99 // 100]
    assert p99 <= 0.020, f"p99 of {len(beats)} heartbeats is {p99 * 1000:.1f} ms"
