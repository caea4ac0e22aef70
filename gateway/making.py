"""Of answers that are large, or that take many turns, a connection has one in the making.

Kafka handles one request of a connection at a time. Here clients may pipeline; but where the next
request is taken before the one before it is done, what they hold adds up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.decoding_in_slices import LEAST_BYTES

if TYPE_CHECKING:
    from gateway.api import Api, RequestContext


class Making:
    """The requests of one connection that others wait for."""

    __slots__ = ("_awaited", "_large", "_sliced")

    def __init__(self) -> None:
        self._large: RequestContext | None = None
        self._sliced: RequestContext | None = None
        self._awaited: RequestContext | None = None

    def begin(self, context: RequestContext) -> None:
        """This one is handled from now on."""
        if context.api.is_large:
            self._large = context

    def go_on(self, context: RequestContext) -> None:
        """What is done for this one goes on in later turns."""
        if not context.api.is_large and self._sliced is None:
            self._sliced = context

    def end(self, context: RequestContext) -> None:
        """This one is answered."""
        if context is self._large:
            self._large = None
        if context is self._sliced:
            self._sliced = None

    def drop(self) -> None:
        """The connection is gone."""
        self._large = self._sliced = self._awaited = None

    def must_wait(self, api: Api, size: int) -> bool:
        """Whether a request of so many bytes has to wait, until ``is_over`` says so."""
        self._awaited = None
        if api.is_large:
            self._awaited = self._large
        if self._awaited is None and size >= LEAST_BYTES:
            self._awaited = self._sliced
        return self._awaited is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing is waited for any more."""
        return self._awaited is None or self._awaited.answered
