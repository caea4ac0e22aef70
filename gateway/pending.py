"""Answers to come that are no ``RequestContext``'s, as a connection sees them."""

from __future__ import annotations

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
