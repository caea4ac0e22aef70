"""Clients that have gone while nothing is read from their connections.

A connection whose requests have to wait is not read from, so that the loop does not see its end. A
client may ask to wait for as long as it likes, and go: its descriptor would stay for as long.
"""

from __future__ import annotations

import select
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gateway.connection import Connection

_GONE: Final = getattr(select, "POLLRDHUP", 0)
"""The client has shut its side down; what has no such event still tells of resets."""


def has_left(transport: Any) -> bool:
    """Whether the client has closed its end, also where what it had sent before is not read yet."""
    line = transport.get_extra_info("socket")
    if line is None:
        return False
    poll = select.poll()
    poll.register(line.fileno(), _GONE)
    return bool(poll.poll(0))


def find_hung_up(connections: Iterable[Connection]) -> list[Connection]:
    """Those of the connections whose clients will send nothing more."""
    poll = select.poll()
    unread = {}
    for connection in connections:
        transport = connection.transport
        if transport is None or transport.is_reading() or transport.is_closing():
            continue
        descriptor = transport.get_extra_info("socket").fileno()
        unread[descriptor] = connection
        poll.register(descriptor, _GONE)
    return [unread[descriptor] for descriptor, _ in poll.poll(0)] if unread else []
