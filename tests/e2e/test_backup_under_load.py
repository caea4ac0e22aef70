"""Backups of a running server under commits: each holds all that was acknowledged before it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from cli.errors import ExitCode
from storage.rocks.rocks_reader import open_store_reader
from tests.e2e.test_kill_under_commits import PARTITIONS, TOPIC, Committer
from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.wire.member import connect, fetch_all

GROUPS = 6
BACKUPS = 3
LOAD_S = 0.3


async def run(*arguments: str | Path) -> tuple[int, str, str]:
    """`muster log` in a process of its own: exit code, output, errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli", "log", *map(str, arguments)),
        cwd=CHECKOUT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), error.decode()


def read_log(store: Path) -> list[list[bytes]]:
    reader = open_store_reader(store)
    try:
        return [list(reader.read_log(number)) for number in range(reader.partitions)]  # type: ignore[arg-type]
    finally:
        reader.close()


@pytest.mark.long
async def test_a_backup_holds_what_was_acknowledged_before_it(tmp_path: Path) -> None:
    server = MusterServer(tmp_path / "data", topics={TOPIC: PARTITIONS})
    committers = [Committer(f"group-{number}") for number in range(GROUPS)]
    acknowledged = []
    with server:
        address = server.address("kafka")
        running = [asyncio.create_task(committer.run(address)) for committer in committers]
        for number in range(BACKUPS):
            await asyncio.sleep(LOAD_S)
            acknowledged.append({c.group_id: dict(c.acknowledged) for c in committers})
            made = await run("backup", tmp_path / f"backup-{number}", "--server", server.grpc)
            assert made[0] == 0, made
        busy = await run("backup", tmp_path / "other", "--data-dir", tmp_path / "data")
        assert busy[0] == ExitCode.PRECONDITION
        assert f"--server {server.grpc}" in busy[2]
        taken = await run("backup", tmp_path / "backup-0", "--server", server.grpc)
        assert taken[0] == ExitCode.PRECONDITION
        assert "already exists" in taken[2]
        verified = await run("verify", tmp_path / "data", "-o", "json")
        assert verified[0] == 0, verified
        server.kill()
        await asyncio.gather(*running)
    whole = read_log(tmp_path / "data" / "store")
    for number, known in enumerate(acknowledged):
        backup = tmp_path / f"backup-{number}"
        verified = await run("verify", backup, "-o", "json")
        assert verified[0] == 0, verified
        assert json.loads(verified[1])["records"] > 0
        for log, part in zip(whole, read_log(backup / "store"), strict=True):
            assert part == log[: len(part)]
        restored = await run("restore", backup, "--data-dir", tmp_path / f"restored-{number}")
        assert restored[0] == 0, restored
        if number == BACKUPS - 1:
            await check_serves(tmp_path / f"restored-{number}", known, committers)


async def check_serves(
    data: Path, known: dict[str, dict[int, int]], committers: list[Committer]
) -> None:
    """A server on a restored store has every offset acknowledged before, and none never sent."""
    with MusterServer(data, topics={TOPIC: PARTITIONS}) as server:
        async with await connect(server.address("kafka")) as client:
            for committer in committers:
                stored = await fetch_all(client, committer.group_id)
                for partition, offset in known[committer.group_id].items():
                    found = stored.get((TOPIC, partition), -1)
                    assert offset <= found <= committer.sent[partition]
