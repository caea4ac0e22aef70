"""A ``muster serve`` as a user starts it: a process of its own, on ports that the system chose."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

MUSTER = Path(sys.executable).with_name("muster")
START_S = 30.0
STOP_S = 20.0
POLL_S = 0.01


class MusterServer:
    """Started by ``with`` or ``start``; the data folder stays, so that it can start again.

    Ports are kept from one start to the next: clients find a restarted server where it was.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.topics = dict(topics or {})
        self.settings = dict(settings or {})
        self.environment = dict(environment or {})
        self.log_path = data_dir.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None
        self._ports = {"kafka": 0, "grpc": 0, "http": 0}

    def command(self) -> Sequence[str]:
        """What is run."""
        flags = [f"--{name}={value}" for name, value in self.settings.items()]
        flags += [f"--listen.{name}=127.0.0.1:{port}" for name, port in self._ports.items()]
        flags += [f"--topic={name}={count}" for name, count in self.topics.items()]
        return (str(MUSTER), "serve", f"--data-dir={self.data_dir}", *flags)

    def start(self) -> None:
        """Start, and wait until it serves."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
            )
        deadline = time.monotonic() + START_S
        while not (endpoints := self._read_endpoints()):
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended: {self.log_tail()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"the server does not start: {self.log_tail()}")
            time.sleep(POLL_S)
        for name in self._ports:
            self._ports[name] = int(endpoints[name].rpartition(":")[2])

    def _read_endpoints(self) -> dict[str, Any] | None:
        assert self.process is not None
        try:
            found = json.loads((self.data_dir / "endpoints.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return found if found["pid"] == self.process.pid else None

    def address(self, name: str) -> tuple[str, int]:
        """Where ``kafka``, ``grpc`` or ``http`` listens."""
        return "127.0.0.1", self._ports[name]

    def target(self, name: str) -> str:
        """The same as ``host:port``."""
        return f"127.0.0.1:{self._ports[name]}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)

    def log_tail(self, lines: int = 30) -> str:
        """The end of what it printed."""
        text = self.log_path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
