"""The demo's server: a child that runs `muster serve`, on the same ports after each start."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.demo.processes import Process
from cli.errors import CommandError

START_TIMEOUT_S = 20.0
_POLL_S = 0.02


@dataclass
class ServerProcess:
    """The process and its addresses, which stay the same across restarts."""

    folder: Path
    arguments: Sequence[str]
    process: Process | None = None
    addresses: dict[str, str] = field(
        default_factory=lambda: dict.fromkeys(("kafka", "grpc", "http"), "127.0.0.1:0")
    )

    async def start(self) -> None:
        """Start the server, and wait until it listens."""
        data = self.folder / "data"
        listen = [f"--listen.{name}={address}" for name, address in self.addresses.items()]
        self.process = Process(
            "server",
            "cli",
            "serve",
            f"--data-dir={data}",
            *listen,
            *self.arguments,
            folder=self.folder,
        )
        await self.process.start(lambda line: None)
        endpoints = await self._wait_for_endpoints(data / "endpoints.json")
        self.addresses = {name: str(endpoints[name]) for name in self.addresses}

    async def _wait_for_endpoints(self, path: Path) -> dict[str, object]:
        assert self.process is not None
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s and self.process.exit_code is None:
            content = read_endpoints(path)
            if content.get("pid") == self.process.pid:
                return content
            await asyncio.sleep(_POLL_S)
        raise CommandError(f"the demo's server did not start:\n{self.process.tail()}")


def read_endpoints(path: Path) -> dict[str, object]:
    """The addresses that a server has published, or nothing."""
    try:
        content: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content
