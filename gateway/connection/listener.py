"""The listening socket, set up so that one event-loop iteration accepts several connections.

uvloop accepts one connection per listening handle and iteration. When iterations take
milliseconds, a few hundred new connections a second overflow the kernel's accept queue, and clients
wait 1, 3 or 7 seconds for the TCP handshake to be retried. So the socket is duplicated and
registered several times. asyncio's own loop accepts every waiting connection.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

ACCEPTED: Final = 32
"""Connections accepted per iteration at most; each costs a file descriptor."""


def compute_accepted(backlog: int) -> int:
    """How many connections to accept per iteration with this ``backlog``."""
    return max(1, min(ACCEPTED, backlog // 2))


class Listener:
    """The asyncio servers of one address."""

    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop accepting connections."""
        for server in self._servers:
            server.close()

    async def wait_closed(self) -> None:
        """Wait until all connections are closed."""
        for server in self._servers:
            await server.wait_closed()


def share(listening: socket.socket, accepted: int) -> list[socket.socket]:
    """Duplicates of the socket that the running loop needs to accept ``accepted`` per iteration."""
    if isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop):
        return []
    return [socket.socket(fileno=os.dup(listening.fileno())) for _ in range(accepted - 1)]


async def listen(
    factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, backlog: int
) -> Listener:
    """Listen; port 0 takes a free one. Raises ``OSError``."""
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(factory, host, port, backlog=backlog)]
    for first in servers[0].sockets:
        for again in share(first, compute_accepted(backlog)):
            servers.append(await loop.create_server(factory, sock=again, backlog=backlog))
    return Listener(servers)
