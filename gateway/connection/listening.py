"""How many of those who connect are accepted in a turn of the loop.

uvloop accepts one in each. Where turns take milliseconds, some hundred newcomers a second fill the
kernel's queue, and whoever comes then waits for a second, for three, for seven, until its
handshake is tried again. So the socket is listened on several times there, each of which accepts
one. asyncio's own loop accepts as many as wait.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

ACCEPTED: Final = 32
"""In a turn, at the most; each costs a descriptor."""


def compute_accepted(backlog: int) -> int:
    """How many are accepted in a turn of which ``backlog`` may wait."""
    return max(1, min(ACCEPTED, backlog // 2))


class Listener:
    """The servers of one address."""

    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers

    @property
    def port(self) -> int:
        """The port that is bound."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    def close(self) -> None:
        """Accept nobody any more."""
        for server in self._servers:
            server.close()

    async def wait_closed(self) -> None:
        """Returns when all connections are closed."""
        for server in self._servers:
            await server.wait_closed()


def share(listening: socket.socket, accepted: int) -> list[socket.socket]:
    """As many more of the socket as the loop that runs takes, to accept so many in a turn."""
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
