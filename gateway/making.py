"""Of answers that are large, or that take many turns, a connection has one in the making.

Kafka handles one request of a connection at a time. Here clients may pipeline; but where the next
request is taken before the one before it is done, what they hold adds up.
"""

from __future__ import annotations

from typing import Protocol

from gateway.codec.decoding_in_slices import LEAST_BYTES


class Request(Protocol):
    """A request, as far as others wait for it."""

    answered: bool

    @property
    def is_large(self) -> bool:
        """Whether its API is one of those that are in the making one at a time."""


class Making:
    """The requests of one connection that others wait for."""

    __slots__ = ("_awaited", "_large", "_sliced")

    def __init__(self) -> None:
        self._large: Request | None = None
        self._sliced: Request | None = None
        self._awaited: Request | None = None

    def begin(self, request: Request) -> None:
        """This one is handled from now on."""
        if request.is_large:
            self._large = request

    def go_on(self, request: Request) -> None:
        """What is done for this one goes on in later turns."""
        if not request.is_large and self._sliced is None:
            self._sliced = request

    def end(self, request: Request) -> None:
        """This one is answered."""
        if request is self._large:
            self._large = None
        if request is self._sliced:
            self._sliced = None

    def drop(self) -> None:
        """The connection is gone."""
        self._large = self._sliced = self._awaited = None

    def must_wait(self, *, is_large: bool, size: int) -> bool:
        """Whether a request of so many bytes has to wait, until ``is_over`` says so."""
        self._awaited = None
        if is_large:
            self._awaited = self._large
        if self._awaited is None and size >= LEAST_BYTES:
            self._awaited = self._sliced
        return self._awaited is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing is waited for any more."""
        return self._awaited is None or self._awaited.answered
