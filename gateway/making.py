"""Limits a connection to one large request in progress, and one long request beside it.

Kafka processes one request of a connection at a time. This server processes pipelined requests
concurrently, but must not let the memory of large responses add up.
"""

from __future__ import annotations

from typing import Protocol

from gateway.codec.decoding_in_slices import LEAST_BYTES


class Request(Protocol):
    """A request that later requests may have to wait for."""

    answered: bool

    @property
    def is_large(self) -> bool:
        """Whether its API is ``is_large``: a connection processes one such request at a time."""


class Making:
    """The requests in progress on one connection that later requests wait for."""

    __slots__ = ("_awaited", "_large", "_sliced")

    def __init__(self) -> None:
        self._large: Request | None = None
        self._sliced: Request | None = None
        self._awaited: Request | None = None

    def begin(self, request: Request) -> None:
        """Note that the handler of ``request`` starts."""
        if request.is_large:
            self._large = request

    def go_on(self, request: Request) -> None:
        """Note that the work for ``request`` continues in later iterations."""
        if not request.is_large and self._sliced is None:
            self._sliced = request

    def end(self, request: Request) -> None:
        """Note that ``request`` is answered."""
        if request is self._large:
            self._large = None
        if request is self._sliced:
            self._sliced = None

    def drop(self) -> None:
        """Forget all requests: the connection is gone."""
        self._large = self._sliced = self._awaited = None

    def must_wait(self, *, is_large: bool, size: int) -> bool:
        """Whether a new request of ``size`` bytes must wait until ``is_over``."""
        self._awaited = None
        if is_large:
            self._awaited = self._large
        if self._awaited is None and size >= LEAST_BYTES:
            self._awaited = self._sliced
        return self._awaited is not None

    @property
    def is_over(self) -> bool:
        """Whether the request that ``must_wait`` found in the way is answered."""
        return self._awaited is None or self._awaited.answered
