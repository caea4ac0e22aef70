"""The server's event loop: uvloop's or asyncio's, changed to take all wake-ups of gRPC at once.

For each event gRPC's poller thread writes a byte into a socket pair, and gRPC's reader takes one
byte in each iteration of the loop. When iterations are long the pair fills up, the poller waits for
space in it, and from then on each iteration handles one event: every caller waits for seconds
behind all events of a client that floods.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Final

_MANY: Final = 1 << 16
"""More wake-up bytes than fit into the pair."""


def find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """A factory of event loops, uvloop's if it is installed."""
    try:
        import uvloop
    except ImportError:
        return partial(make_loop, asyncio.SelectorEventLoop)
    return partial(make_loop, uvloop.Loop)


def make_loop(kind: Any) -> asyncio.AbstractEventLoop:
    """A loop of this class."""

    def add_reader(self: Any, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        if _is_of_grpc(callback):
            callback, args = take_all_wakes, (fd, partial(callback, *args))
        kind.add_reader(self, fd, callback, *args)

    loop: asyncio.AbstractEventLoop = type("Loop", (kind,), {"add_reader": add_reader})()
    return loop


def _is_of_grpc(callback: Callable[..., object]) -> bool:
    handler = callback.func if isinstance(callback, partial) else callback
    return type(getattr(handler, "__self__", None)).__name__ == "PollerCompletionQueue"


def take_all_wakes(pair: socket.socket, handle_events: Callable[[], object]) -> None:
    """Leave one byte for ``handle_events``, which reads it and then handles all events."""
    waiting = len(pair.recv(_MANY, socket.MSG_PEEK))
    if waiting > 1:
        pair.recv(waiting - 1)
    handle_events()
