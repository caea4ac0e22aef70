"""Detects clients that have hung up while their connections are not being read.

The loop does not read from a connection whose requests have to wait, so it does not see the end of
the stream. A client may ask for an arbitrarily long wait and go; its descriptor would stay open
for as long.
"""

from __future__ import annotations

import select
from collections.abc import Iterable
from typing import Any, Final

from gateway.connected import Connected

_GONE: Final = getattr(select, "POLLRDHUP", 0)
"""The client has shut down its side. Platforms without this event still report resets."""


def has_left(transport: Any) -> bool:
    """Whether the client has closed its end, even if bytes that it sent before are unread."""
    line = transport.get_extra_info("socket")
    return line is not None and bool(_poll([line.fileno()]))


def find_hung_up(connections: Iterable[Connected]) -> list[Connected]:
    """The unread connections whose client will send nothing more."""
    unread = {}
    for connection in connections:
        transport = connection.transport
        if transport is None or transport.is_reading() or transport.is_closing():
            continue
        unread[transport.get_extra_info("socket").fileno()] = connection
    return [unread[descriptor] for descriptor in _poll(unread)] if unread else []


def _poll(descriptors: Iterable[int]) -> list[int]:
    """The descriptors whose peer has gone."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, _GONE)
    return [descriptor for descriptor, _ in poll.poll(0)]
