"""Clients that have gone while nothing is read from their connections.

A connection whose requests have to wait is not read from, so that the loop does not see its end. A
client may ask to wait for as long as it likes, and go: its descriptor would stay for as long.
"""

from __future__ import annotations

import select
from collections.abc import Iterable
from typing import Any, Final

from gateway.connected import Connected

_GONE: Final = getattr(select, "POLLRDHUP", 0)
"""The client has shut its side down; what has no such event still tells of resets."""


def has_left(transport: Any) -> bool:
    """Whether the client has closed its end, also where what it had sent before is not read yet."""
    line = transport.get_extra_info("socket")
    return line is not None and bool(_poll([line.fileno()]))


def find_hung_up(connections: Iterable[Connected]) -> list[Connected]:
    """Those of the connections whose clients will send nothing more."""
    unread = {}
    for connection in connections:
        transport = connection.transport
        if transport is None or transport.is_reading() or transport.is_closing():
            continue
        unread[transport.get_extra_info("socket").fileno()] = connection
    return [unread[descriptor] for descriptor in _poll(unread)] if unread else []


def _poll(descriptors: Iterable[int]) -> list[int]:
    """Those of the descriptors whose other ends have gone."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, _GONE)
    return [descriptor for descriptor, _ in poll.poll(0)]
