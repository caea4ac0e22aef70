"""A server of Kafka's jars as a child process, with its output in a file."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.waiting import NotInTime, wait_until

HOST = "127.0.0.1"
_STOP_WITHIN_S = 30.0
_FIRST_PORT, _LAST_PORT = 20_000, 31_900
"""Below the ports that outgoing connections get, so that a port stays free while its broker is
down."""


class ServerFailed(RuntimeError):
    """A server did not get ready; the message ends with its log."""


class ServerProcess:
    """One server, which can be started again after `stop` and `kill`."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._command = list(command)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Raises ServerFailed when it does not run."""
        if self._process is None:
            raise ServerFailed(f"{self.name} is not running")
        return self._process.pid

    def start(self) -> None:
        """Only starts it; the log of earlier runs is kept."""
        if self.is_running:
            raise ServerFailed(f"{self.name} runs already")
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
            )

    def wait_until_ready(self, is_ready: Callable[[], bool], within_s: float) -> None:
        """Raises ServerFailed, in time and when the process ends."""
        try:
            wait_until(is_ready, within_s=within_s, is_hopeless=lambda: not self.is_running)
        except NotInTime:
            raise ServerFailed(f"{self.name} did not get ready:\n{self.read_log()}") from None

    def stop(self) -> None:
        """As SIGTERM does, or by SIGKILL where that takes too long."""
        self.signal(signal.SIGCONT)
        self._end(signal.SIGTERM, _STOP_WITHIN_S)

    def kill(self) -> None:
        self._end(signal.SIGKILL, None)

    def signal(self, number: int) -> None:
        """SIGSTOP makes a server that holds its connections and answers nothing."""
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, number: int, within_s: float | None) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def read_log(self) -> str:
        """The end of what it printed."""
        if not self.log_file.exists():
            return ""
        return self.log_file.read_text(errors="replace")[-4_000:]


def find_ports(count: int) -> list[int]:
    """Ports in a row on which nothing listens."""
    while True:
        first = random.randrange(_FIRST_PORT, _LAST_PORT - count)
        ports = list(range(first, first + count))
        if all(map(_is_free, ports)):
            return ports


def _is_free(port: int) -> bool:
    try:
        with socket.create_server((HOST, port)):
            return True
    except OSError:
        return False
