"""Reading from a connection, which several reasons may hold."""

from __future__ import annotations

import asyncio
from enum import Flag, auto


class Hold(Flag):
    """Why a connection is not read."""

    NOT_CONNECTED = auto()
    OTHER_FULL = auto()
    """The other side does not take what there is to send."""
    OWN_FULL = auto()
    """It does not read what it is sent."""
    TOO_MANY_UNANSWERED = auto()


class Brake:
    """Reads only while there is no reason to hold."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._holds = Hold(0)

    def fit(self, transport: asyncio.Transport) -> None:
        """The connection is there."""
        self._transport = transport
        if self._holds:
            transport.pause_reading()

    def hold(self, why: Hold) -> None:
        """Do not read, for this reason."""
        if not self._holds and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        self._holds |= why

    def release(self, why: Hold) -> None:
        """This reason is over."""
        if why not in self._holds:
            return
        self._holds &= ~why
        if not self._holds and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
