"""A real `muster serve` for tests: a process of its own, on ports that the system chose.

    with MusterServer(tmp_path / "data", topics={"orders": 12}) as server:
        Consumer({"bootstrap.servers": server.kafka, ...})
        server.kill()       # SIGKILL
        server.start()      # again, on the same folder and ports

`server.kafka`, `server.grpc` and `server.http` are HOST:PORT.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.groups import CHECKOUT
from tests.support.waiting import NotInTime, wait_until

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 90.0
LISTENERS = ("kafka", "grpc", "http")
GIVEN = {
    "kafka": ("--listen.kafka", "--listeners"),
    "grpc": ("--listen.grpc",),
    "http": ("--listen.http",),
}
"""What says where a listener listens; without it, on a free port."""
NOT_LISTENERS = ("pid", "version", "cluster_id")
SMALL: Mapping[str, object] = {"log.reserve.bytes": 1 << 20}
"""Folders of tests are kept for a while, and there are many."""


class ServerNotStarted(RuntimeError):
    """The server ended before it listened; `exit_code` and `output` say why."""

    def __init__(self, exit_code: int | None, output: str) -> None:
        super().__init__(f"muster serve ended with {exit_code}:\n{output}")
        self.exit_code = exit_code
        self.output = output


class MusterServer:
    """Starts `muster serve` with a data folder and more arguments; ends what it started."""

    def __init__(
        self,
        data_dir: Path,
        *arguments: str,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        working_folder: Path = CHECKOUT,
    ) -> None:
        self.data_dir = data_dir
        self.arguments = [
            *arguments,
            *(f"--topic={name}={count}" for name, count in (topics or {}).items()),
            *(f"--{name}={value}" for name, value in (SMALL | dict(settings or {})).items()),
        ]
        self.environment = dict(environment or {})
        self.working_folder = working_folder
        self.process: subprocess.Popen[bytes] | None = None
        self.endpoints: dict[str, str] = {}
        self.file_limit: int | None = None
        """Files that it may have open; ``None`` for as many as this process."""
        self.module = "cli"
        """What is run with ``serve``."""
        self.log = data_dir.with_name(data_dir.name + ".log")

    @property
    def kafka(self) -> str:
        return self.endpoints["kafka"]

    @property
    def grpc(self) -> str:
        return self.endpoints["grpc"]

    @property
    def http(self) -> str:
        return self.endpoints["http"]

    def address(self, name: str) -> tuple[str, int]:
        """Where `kafka`, `grpc`, `http` or a further listener listens, as a socket takes it."""
        host, _, port = self.endpoints[name].rpartition(":")
        return host, int(port)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> Self:
        """Starts it and returns when it listens. Raises `ServerNotStarted`."""
        assert self.process is None or self.process.poll() is not None, "it runs already"
        self._begin()
        self._wait_until_ready()
        return self

    def kill(self) -> None:
        """SIGKILL, and waits until the process is gone."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def output(self) -> str:
        """All that it has printed since the first start, both streams."""
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def _begin(self) -> None:
        listen = [
            f"--listen.{name}={self._compute_address(name)}"
            for name in LISTENERS
            if not any(argument.startswith(GIVEN[name]) for argument in self.arguments)
        ]
        command = self.compute_command()
        if self.file_limit is not None:
            command = ["sh", "-c", f'ulimit -n {self.file_limit}; exec "$@"', "sh", *command]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *listen, *self.arguments],
                cwd=self.working_folder,
                env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk", **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def compute_command(self) -> list[str]:
        """What is run, but for where it listens and its arguments."""
        return [sys.executable, "-m", self.module, "serve", f"--data-dir={self.data_dir}"]

    def _compute_address(self, name: str) -> str:
        return self.endpoints.get(name, "127.0.0.1:0")

    def _wait_until_ready(self) -> None:
        """Until its endpoints are there, those of a killed one carry another process id, and its
        groups are loaded."""
        process = self.process
        assert process is not None

        def is_ready() -> bool:
            endpoints = self._read_endpoints()
            if endpoints.get("pid") != process.pid:
                return False
            self.endpoints = {
                name: str(found) for name, found in endpoints.items() if name not in NOT_LISTENERS
            }
            return self._is_ready()

        try:
            wait_until(
                is_ready, within_s=START_TIMEOUT_S, is_hopeless=lambda: process.poll() is not None
            )
        except NotInTime:
            exit_code = process.poll()
            if exit_code is None:
                self.kill()
            raise ServerNotStarted(exit_code, self.output()) from None

    def _is_ready(self) -> bool:
        door = http.client.HTTPConnection(*self.address("http"), timeout=START_TIMEOUT_S)
        try:
            door.request("GET", "/readyz")
            return door.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            door.close()

    def _read_endpoints(self) -> dict[str, object]:
        try:
            found = json.loads((self.data_dir / "endpoints.json").read_text())
        except FileNotFoundError:
            return {}
        assert isinstance(found, dict)
        return found

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
