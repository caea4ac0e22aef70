"""Requests that wait for their answer, as a connection sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Pending(Protocol):
    """A repeated request in its connection's queue, served without a ``RequestContext``.

    ``frame`` is its response frame, valid once ``answered``. ``began_s`` is when it was taken up
    (``perf_counter``), 0 if it is not timed; ``key`` is that of its API.
    """

    answered: bool
    began_s: float
    frame: bytes
    key: int

    def abandon(self) -> None:
        """Stop waiting: the connection is gone."""


class HeldBack(Protocol):
    """A parked request: its answer is held back until its connection sends another request."""

    def end(self) -> None:
        """Answer now: another request needs the connection."""

    def drop(self) -> None:
        """Stop waiting without an answer: the connection is gone."""


class Waiting:
    """A request that may wait for its answer, with callbacks for the ends that cut the wait short.

    A subclass initialises the three attributes.
    """

    __slots__ = ("_abandoned", "_drained", "answered")

    answered: bool
    _abandoned: Callable[[], None] | None
    _drained: Callable[[], None] | None

    def on_abandoned(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once if the connection is lost before the request is answered.

        A long poll or a parked heartbeat cancels its watch and timer there. A request has one
        callback; a new one replaces it.
        """
        self._abandoned = callback

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once if the server stops before the request is answered; it answers.

        Later requests of the connection need their answers too, and these wait for this one.
        """
        self._drained = callback

    def keep(self) -> None:
        """Clear both callbacks: the wait is over."""
        self._abandoned = self._drained = None

    def drain(self) -> None:
        """Run the drain callback; the connection calls this when the server stops."""
        callback, self._drained = self._drained, None
        if callback is not None and not self.answered:
            callback()

    def abandon(self) -> None:
        """Run the abandon callback; the connection calls this when it is lost."""
        callback = self._abandoned
        self.keep()
        if callback is not None and not self.answered:
            callback()
