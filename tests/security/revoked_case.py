"""A case of rights that are revoked from clients of each kind while others keep theirs.

Rights are told apart by host: who comes from ``KEEPS`` keeps all, who comes from ``LOSES`` loses
what the case says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import grpc.aio

from tests.server import MusterServer
from tests.support.waiting import until
from tests.support.wire.connection import Connection

KEEPS: Final = "127.0.0.2"
LOSES: Final = "127.0.0.1"
NO_TOPIC, NO_GROUP = 29, 30

Ask = Callable[[], Awaitable[bool]]
"""One request; whether anything was granted. A refusal has the error of the case, or the test
fails."""


async def connect(server: MusterServer, host: str = LOSES) -> Connection:
    """A connection to the Kafka wire that comes from ``host``."""
    address, port = server.address("kafka")
    streams = await asyncio.open_connection(address, port, local_addr=(host, 0))
    return Connection(*streams)


@dataclass
class Case:
    """What is revoked, and the clients that notice."""

    server: MusterServer
    prefix: str
    topic: str
    code: int
    """The error of who lost the right."""
    safe: Connection
    channel: grpc.aio.Channel
    is_revoked: bool = False
    is_over: bool = False
    leaks: list[str] = field(default_factory=list)
    served: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[tuple[str, int], int] = field(default_factory=dict)
    """The highest offset that was acknowledged, by group and partition."""
    lines: list[Connection] = field(default_factory=list)

    async def connect(self) -> Connection:
        """A connection of who loses the right; ``close`` closes it."""
        self.lines.append(await connect(self.server))
        return self.lines[-1]

    async def close(self) -> None:
        for line in self.lines:
            await line.end()

    def group(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def is_granted(self, code: int) -> bool:
        """Whether an answer grants what was asked for."""
        assert code in (0, self.code), code
        return code == 0

    def acknowledge(self, group: str, rows: dict[int, int]) -> None:
        for partition, offset in rows.items():
            known = self.acknowledged.get((group, partition), -1)
            self.acknowledged[group, partition] = max(known, offset)

    async def wait_for(self, counts: dict[str, int], names: Iterable[str]) -> None:
        """Wait until each of these clients has some of these answers."""
        await until(lambda: all(counts.get(name, 0) >= 3 for name in names), within_s=30)

    async def run(self, name: str, ask: Ask) -> None:
        """Ask at full speed. Whatever is asked after the revocation must be refused."""
        while not self.is_over:
            is_late = self.is_revoked
            if not await ask():
                self.refused[name] = self.refused.get(name, 0) + 1
            elif is_late:
                self.leaks.append(name)
            else:
                self.served[name] = self.served.get(name, 0) + 1


def is_refusal(code: int) -> bool:
    """Whether the error is that of a right that is lacking."""
    return code in (NO_TOPIC, NO_GROUP)
