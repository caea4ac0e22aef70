"""The broker's side of a relay connection, as asyncio's protocol."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Relayed(Protocol):
    """The connection that it is a side of."""

    def on_broker_data(self, data: bytes) -> None:
        """Bytes of the broker."""

    def on_broker_full(self, is_full: bool) -> None:
        """Whether the broker does not take what there is to send."""

    def on_broker_lost(self) -> None:
        """The broker's connection has ended."""


class BrokerSide(asyncio.Protocol):
    """Hands everything to the connection."""

    def __init__(self, connection: Relayed) -> None:
        self._connection = connection
        self.data_received = connection.on_broker_data  # type: ignore[method-assign]

    def pause_writing(self) -> None:
        """Asyncio: too much is unsent."""
        self._connection.on_broker_full(True)

    def resume_writing(self) -> None:
        """Asyncio: it is sent."""
        self._connection.on_broker_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio: the end."""
        self._connection.on_broker_lost()
