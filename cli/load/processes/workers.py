"""The processes of a load test, as the first one starts, orders and ends them.

A process prints one JSON object a line: ``{"say": "ready"}`` when its members have joined,
``{"say": "figures", "joined": N, "figures": {...}}`` every second with what is new, ``{"say":
"failed", "message": "..."}``, and at its end ``{"say": "done"}``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from cli.load.figures.figures import Figures
from cli.load.options.plan import Plan, Share

_LINE_BYTES_MAX: Final = 1 << 24
_TAIL_BYTES: Final = 500


class Workers:
    """All processes together. ``recent`` are the figures since they were taken last."""

    def __init__(self, plan: Plan, shares: Sequence[Share]) -> None:
        self._plan = plan
        self._shares = shares
        self._processes: list[asyncio.subprocess.Process] = []
        self._readers: list[asyncio.Task[None]] = []
        self._joined = [0] * len(shares)
        self._recent = Figures()
        self._ready = 0
        self.changed = asyncio.Event()
        self.failures: list[str] = []

    @property
    def are_ready(self) -> bool:
        """Whether the members of all processes have joined."""
        return self._ready == len(self._shares)

    @property
    def are_done(self) -> bool:
        """Whether all processes have ended, or closed their output."""
        return all(reader.done() for reader in self._readers)

    @property
    def joined(self) -> int:
        """Members that have joined."""
        return sum(self._joined)

    async def start(self) -> None:
        """Start all processes."""
        for index, share in enumerate(self._shares):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "cli.load.processes.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE_BYTES_MAX,
                env={**os.environ, "GRPC_VERBOSITY": "NONE"},
            )
            self._processes.append(process)
            self._readers.append(asyncio.create_task(self._read(index, process)))
            self._order(process, json.dumps({"plan": self._plan.dump(), "share": share.dump()}))

    def go(self, start_ns: int, end_ns: int) -> None:
        """Let all processes send their load between these times of the monotonic clock."""
        for process in self._processes:
            self._order(process, f"go {start_ns} {end_ns}")

    def stop(self) -> None:
        """Let all processes end: what is in flight is awaited, and members leave."""
        for process in self._processes:
            self._order(process, "stop")

    def take(self) -> Figures:
        """The figures of all processes since the last call."""
        taken, self._recent = self._recent, Figures()
        return taken

    async def end(self, within_s: float) -> None:
        """Wait for the end of all processes, and kill those that are late."""
        if self._readers:
            await asyncio.wait(self._readers, timeout=within_s)
        self.kill()
        for process in self._processes:
            await process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    def kill(self) -> None:
        """End all processes now; their members stay until their sessions end."""
        for process in self._processes:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()

    def _order(self, process: asyncio.subprocess.Process, line: str) -> None:
        assert process.stdin is not None
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(line.encode() + b"\n")

    async def _read(self, index: int, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(process.stderr.read())
        is_done = False
        async for line in process.stdout:
            said = json.loads(line)
            is_done = said["say"] == "done"
            self._hear(index, said)
            self.changed.set()
        if await process.wait() or not is_done:
            tail = (await errors).decode(errors="replace").strip()[-_TAIL_BYTES:]
            self._recent.errors["PROCESS_DIED"] += 1
            self.failures.append(f"a process of the load test died: {tail or 'it was killed'}")
        errors.cancel()
        self.changed.set()

    def _hear(self, index: int, said: dict[str, Any]) -> None:
        match said["say"]:
            case "ready":
                self._ready += 1
            case "failed":
                self._recent.errors["PROCESS_FAILED"] += 1
                self.failures.append(said["message"])
            case "figures":
                self._joined[index] = said["joined"]
                self._recent.merge(Figures.load(said["figures"]))
