"""Meters all connections while there is a quota that requests are looked at for, else none."""

from __future__ import annotations

from typing import Final

from coordinator.runtime.loop.slices import Steps
from gateway.connection.connection import Connection
from gateway.connection.shared import Shared
from gateway.long_answers import pace
from gateway.quotas.metered_connection import meter, stop_metering

SLICE: Final = 200
"""Connections that are changed in one iteration, about 20 µs each."""


def look_at_quotas(shared: Shared) -> None:
    """Change the connections, in slices, if the first such quota was set or the last removed.

    Those that are made meanwhile are what they have to be: see ``Shared.on_connected``.
    """
    is_metering = shared.quotas.is_active
    if is_metering == shared.is_metering:
        return
    shared.is_metering = is_metering
    if not is_metering:
        shared.quotas.holdings.forget()
    shared.node.slices.run(_change_all(shared, is_metering))


def _change_all(shared: Shared, is_metering: bool) -> Steps[None]:
    for connection, is_slice_done in pace(tuple(shared.connections), SLICE):
        if shared.is_metering != is_metering:
            return
        if isinstance(connection, Connection) and connection in shared.connections:
            if is_metering:
                meter(connection, shared.quotas)
            else:
                stop_metering(connection)
        if is_slice_done:
            yield
