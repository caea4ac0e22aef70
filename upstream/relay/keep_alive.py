"""TCP keep-alive: a peer that is gone without a word is found out in half a minute."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

_OPTIONS: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Turn it on, and send small frames at once."""
    connection = transport.get_extra_info("socket")
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in _OPTIONS:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
