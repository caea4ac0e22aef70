"""Answers to come, as a connection sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Pending(Protocol):
    """A request that repeats another, in its place among the requests of its connection.

    ``frame`` is its answer, to be sent once it is ``answered``.
    """

    answered: bool
    frame: bytes

    def abandon(self) -> None:
        """The connection is gone."""


class HeldBack(Protocol):
    """A request whose answer is held back while nothing else comes by its connection."""

    def end(self) -> None:
        """Answer now: something else wants the connection."""

    def drop(self) -> None:
        """The connection is gone: no answer."""


class Waiting:
    """A request that may wait for its answer, and what is to be done if what it waits for ends.

    Whoever inherits from it sets the three attributes as it is made.
    """

    __slots__ = ("_abandoned", "_drained", "answered")

    answered: bool
    _abandoned: Callable[[], None] | None
    _drained: Callable[[], None] | None

    def on_abandoned(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once if the connection goes before the answer was given.

        A long poll or a parked heartbeat drops its watch and timer there. One callback a
        request; a newer one replaces the older.
        """
        self._abandoned = callback

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once if the server stops before the answer was given, to give it.

        What comes after a request that waits is owed an answer too, and gets none before it.
        """
        self._drained = callback

    def keep(self) -> None:
        """What it waited for has come: it is neither abandoned nor drained any more."""
        self._abandoned = self._drained = None

    def drain(self) -> None:
        """The server stops: what the connection calls for each request not answered."""
        callback, self._drained = self._drained, None
        if callback is not None and not self.answered:
            callback()

    def abandon(self) -> None:
        """The connection is gone: what the connection calls for each request not answered."""
        callback = self._abandoned
        self.keep()
        if callback is not None and not self.answered:
            callback()
