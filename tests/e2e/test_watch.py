"""`muster group watch` as a process: what it tells of members of the SDK, and how it ends."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import pty
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import muster
from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.waiting import wait_until

WITHIN_S = 60.0


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """SIGINT reaches the processes of a test, also where a shell has begun pytest without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": 4}) as running:
        yield running


def words(server: MusterServer, *options: str) -> list[str]:
    command = [sys.executable, "-m", "cli", "group", "watch", "g"]
    return [*command, "--server", server.grpc, *options]


@asynccontextmanager
async def joined(server: MusterServer, member_id: str) -> AsyncIterator[None]:
    async with muster.Member(server.grpc, "g", topics=["orders"], member_id=member_id) as member:
        polling = asyncio.create_task(_poll(member))
        try:
            yield
        finally:
            polling.cancel()


async def _poll(member: muster.Member) -> None:
    async for _ in member.changes():
        pass


class Watcher:
    """A watch with JSON lines."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []

    async def until(self, change: str, **values: Any) -> None:
        """Read lines up to one with this change and these values."""
        assert self.process.stdout is not None
        while True:
            line = await asyncio.wait_for(self.process.stdout.readline(), WITHIN_S)
            assert line, f"it ended after {self.seen}"
            found = json.loads(line)
            self.seen.append(found)
            if found["change"] == change and values.items() <= found.items():
                return


async def start(server: MusterServer, *options: str) -> Watcher:
    process = await asyncio.create_subprocess_exec(
        *words(server, "-o", "jsonl", *options), cwd=CHECKOUT, stdout=PIPE, stderr=PIPE
    )
    return Watcher(process)


async def test_it_tells_of_members_until_ctrl_c(server: MusterServer) -> None:
    async with joined(server, "m1"):
        watcher = await start(server)
        await watcher.until("described")
        async with joined(server, "m2"):
            await watcher.until("member_joined", member_id="m2")
            await watcher.until("partitions_moved", after="m2")
        await watcher.until("member_left", member_id="m2")
        await watcher.until("partitions_moved", after="m1")
        watcher.process.send_signal(signal.SIGINT)
        _, error = await watcher.process.communicate()
    assert (watcher.process.returncode, error) == (130, b"")
    epochs = [line for line in watcher.seen if line["change"] == "group_epoch_changed"]
    assert len(epochs) >= 2
    for earlier, later in itertools.pairwise(epochs):
        assert later["before"] == earlier["after"]


async def test_a_server_that_restarts_is_waited_for(server: MusterServer) -> None:
    async with joined(server, "m1"):
        watcher = await start(server)
        await watcher.until("described")
        server.kill()
        assert watcher.process.stderr is not None
        line = await asyncio.wait_for(watcher.process.stderr.readline(), WITHIN_S)
        assert b"cannot reach" in line
        await asyncio.to_thread(server.start)
        line = await asyncio.wait_for(watcher.process.stderr.readline(), WITHIN_S)
        assert b"the server answers again" in line
        async with joined(server, "m2"):
            await watcher.until("member_joined", member_id="m2")
        watcher.process.send_signal(signal.SIGINT)
        assert await watcher.process.wait() == 130


async def test_a_server_that_stays_silent_is_exit_code_5(server: MusterServer) -> None:
    async with joined(server, "m1"):
        watcher = await start(server, "--timeout", "2s", "--interval", "100ms")
        await watcher.until("described")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            _, error = await asyncio.wait_for(watcher.process.communicate(), WITHIN_S)
        finally:
            os.kill(server.pid, signal.SIGCONT)
    assert watcher.process.returncode == 5
    assert b"did not answer within 2 s" in error


async def test_a_reader_that_has_seen_enough_ends_it_quietly(server: MusterServer) -> None:
    async with joined(server, "m1"):
        command = f"{' '.join(words(server))} | head -1"
        process = await asyncio.create_subprocess_shell(
            f"set -o pipefail; {command}",
            cwd=CHECKOUT,
            stdout=PIPE,
            stderr=PIPE,
            executable="/bin/bash",
        )
        assert process.stdout is not None
        assert b"g: Consumer" in await asyncio.wait_for(process.stdout.readline(), WITHIN_S)
        async with joined(server, "m2"):
            _, error = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert (process.returncode, error) == (0, b"")


async def test_a_terminal_has_a_table_and_lines(server: MusterServer) -> None:
    async with joined(server, "m1"):
        terminal, its_end = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *words(server),
            cwd=CHECKOUT,
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "50"},
        )
        os.close(its_end)
        shown = bytearray()
        reading = asyncio.create_task(asyncio.to_thread(_read, terminal, shown))
        try:
            await asyncio.to_thread(wait_until, lambda: b"orders:0,1,2,3" in shown, lambda: shown)
            async with joined(server, "m2"):
                await asyncio.to_thread(wait_until, lambda: b"m2 joined" in shown, lambda: shown)
            process.send_signal(signal.SIGINT)
            assert await asyncio.wait_for(process.wait(), WITHIN_S) == 130
        finally:
            # The thread reads until the terminal has no other end.
            if process.returncode is None:
                process.kill()
            await reading
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "MEMBER" in text
    assert "Traceback" not in text


def _read(terminal: int, shown: bytearray) -> None:
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # The other end is closed.
            break
        if not part:
            break
        shown += part
    os.close(terminal)
