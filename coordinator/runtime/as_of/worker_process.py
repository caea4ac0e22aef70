"""A worker process as its parent sees it: started, asked, stopped, killed."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from coordinator.runtime.as_of.history_worker import (
    LENGTH,
    HistoryResult,
    WorkerOrders,
    WorkerRequest,
)
from coordinator.runtime.as_of.result_parts import decode_part
from storage.folder.unfinished import make_folder

WORKER_PROGRAM = (
    "import sys; from coordinator.runtime.as_of.history_worker import main; main(sys.argv[1])"
)
WORKER_PREFIX = "muster-history-"


class Worker:
    """One process. It answers one request at a time."""

    def __init__(self) -> None:
        self.retire: asyncio.TimerHandle | None = None
        self._folders = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._exit_code: asyncio.Task[int] | None = None
        self._answering: asyncio.Task[HistoryResult] | None = None

    async def start(self, orders: WorkerOrders) -> None:
        ours, theirs = socket.socketpair()
        folder = make_folder(Path(tempfile.gettempdir()), WORKER_PREFIX)
        path = self._folders.enter_context(folder)
        with theirs:
            # On a thread: the event loop's own subprocess support would fork this process.
            self._process = await asyncio.to_thread(_spawn, theirs, str(path))
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._send(orders)

    async def ask(self, request: WorkerRequest) -> HistoryResult:
        """Send a request. Raises ``EOFError`` if the process ends before it answers.

        Who is cancelled leaves a process that still answers: see ``finish``.
        """
        self._cancel_retirement()
        self._send(request)
        self._answering = asyncio.create_task(self._receive(), name="history-answer")
        try:
            return await asyncio.shield(self._answering)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise EOFError from None

    async def finish(self, within_s: float) -> bool:
        """Stop what nobody wants any more; whether the process can be asked again in time."""
        if self._answering is None or self._writer is None:
            return False
        if not self._answering.done():
            self._writer.write(LENGTH.pack(0))
        await asyncio.wait((self._answering,), timeout=within_s)
        if self._answering.done():
            return self._answering.exception() is None
        self._answering.cancel()
        return False

    def kill(self) -> asyncio.Task[int]:
        """Kill the process at once; the task has its exit code."""
        self._cancel_retirement()
        if self._exit_code is None:
            if self._writer is not None:
                self._writer.close()
            if self._process is not None:
                self._process.kill()
            self._exit_code = asyncio.create_task(self._wait(), name="history-worker-end")
        return self._exit_code

    async def _wait(self) -> int:
        """Wait for the process, then remove its folder, since a killed process leaves its files."""
        if self._process is None:
            return 0
        exit_code = await asyncio.to_thread(self._process.wait)
        await asyncio.to_thread(self._folders.close)
        return exit_code

    def _cancel_retirement(self) -> None:
        if self.retire is not None:
            self.retire.cancel()
            self.retire = None

    async def _receive(self) -> HistoryResult:
        """A result, of which the event loop decodes one part in an iteration."""
        assert self._reader is not None
        decoded: list[Any] = []
        for _ in range(await self._receive_length()):
            data = await self._reader.readexactly(await self._receive_length())
            # What has come already is read without a wait.
            await asyncio.sleep(0)
            decoded.append(decode_part(data, decoded))
        result: HistoryResult = decoded[-1]
        return result

    async def _receive_length(self) -> int:
        assert self._reader is not None
        length: int = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))[0]
        return length

    def _send(self, message: object) -> None:
        assert self._writer is not None
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._writer.write(LENGTH.pack(len(data)) + data)


def _spawn(channel: socket.socket, folder: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", WORKER_PROGRAM, folder],
        stdin=channel.fileno(),
        stdout=channel.fileno(),
        env={**os.environ, "PYTHONPATH": path},
    )
