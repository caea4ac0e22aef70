"""Child processes of the demo: started, read, killed by process id, never left behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cli.demo.events import Event, decode_event

_STOP_TIMEOUT_S = 15.0
_TAIL_LINES = 5


class Process:
    """A child process that runs a module of this project; its standard error goes to a file."""

    def __init__(self, name: str, module: str, *arguments: str, folder: Path) -> None:
        self.name = name
        self._command = [sys.executable, "-m", "cli.demo.child", module, *arguments]
        self._stderr = folder / f"{name}.stderr"
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, or ``None`` while the process runs."""
        return None if self._process is None else self._process.returncode

    async def start(self, on_line: Callable[[str], None]) -> None:
        """Start the process; ``on_line`` gets each line of its standard output."""
        with self._stderr.open("ab") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._reader = asyncio.create_task(self._read(on_line), name=f"demo-{self.name}")

    async def wait(self, timeout_s: float) -> int:
        """Wait until it ends by itself, then SIGKILL; return the exit code."""
        assert self._process is not None
        try:
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
        return await self._finish()

    async def kill(self) -> float:
        """Send SIGKILL, and read the rest of its output; return when the process was gone.

        One that was interrupted before it had begun has nothing to end.
        """
        if self._process is None:
            return time.monotonic()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._finish()
        return time.monotonic()

    async def terminate(self) -> int:
        """Send SIGTERM, then SIGKILL if the process does not end; return the exit code."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.terminate()
        return await self.wait(_STOP_TIMEOUT_S)

    def tail(self) -> str:
        """The last lines of its standard error."""
        with suppress(FileNotFoundError):
            lines = self._stderr.read_text(errors="replace").splitlines()
            return "\n".join(lines[-_TAIL_LINES:])
        return ""

    async def _finish(self) -> int:
        assert self._process is not None
        code = await self._process.wait()
        if self._reader is not None:
            await self._reader
        return code

    async def _read(self, on_line: Callable[[str], None]) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            on_line(line.decode("utf-8", "replace").rstrip("\n"))


class Worker(Process):
    """A consumer or member; its output is events."""

    async def start_recording(self, on_event: Callable[[Event], None]) -> None:
        """Start it. Lines that are not events are skipped: a kill can truncate the last one."""

        def on_line(line: str) -> None:
            with suppress(ValueError, KeyError):
                on_event(decode_event(line))

        await self.start(on_line)
