"""Leaks to plant in a server, each of which a soak must find: ``--leak NAMES``.

Each connection that ends leaves something.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

_kept: list[object] = []


def _leave_object(connection: Any) -> None:
    _kept.append(connection.heartbeats)


def _leave_cycle(connection: Any) -> None:
    connection.me = connection


def _leave_bytes(connection: Any) -> None:
    """Which the collector knows nothing of."""
    _kept.append(os.urandom(10_000))


def _leave_descriptor(connection: Any) -> None:
    os.open(os.devnull, os.O_RDONLY)


LEAKS: Final[dict[str, Callable[[Any], None]]] = {
    "objects": _leave_object,
    "cycles": _leave_cycle,
    "bytes": _leave_bytes,
    "descriptors": _leave_descriptor,
}


def plant(names: str) -> None:
    """Those of the names, with commas between them, in the server that this process is to be."""
    from gateway.connection.connection import Connection

    leaks, lost = [LEAKS[name] for name in names.split(",")], Connection.connection_lost

    def connection_lost(self: Connection, error: Exception | None) -> None:
        for leave in leaks:
            leave(self)
        lost(self, error)

    Connection.connection_lost = connection_lost  # type: ignore[method-assign, assignment]
