"""Handles requests for many items, and builds responses of many rows, in time slices.

The event loop runs between slices. The first slice runs when the request arrives, so a small
request never waits behind large ones; the other slices take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar

from coordinator.runtime.loop.slices import Steps
from gateway.api import RequestContext
from gateway.codec.encoding import Encoded, Write, compile_rows_writer
from gateway.codec.kio_schema import response_type

S = TypeVar("S")
T = TypeVar("T")

SLICE: Final = 1_000
"""Rows built and encoded in one iteration, about 10 µs each."""
FIRST_SLICE: Final = 100
"""Rows built and encoded when the request arrives, whatever the load."""
DECISIONS_SLICE: Final = 300
"""Decisions by ACLs in one iteration, up to 30 µs each."""
COMMANDS_SLICE: Final = 10
"""Commands submitted in one iteration; each takes up to a millisecond to handle."""


class LongAnswer:
    """A response under construction; all its arrays share one budget of rows per iteration."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._left = min(FIRST_SLICE, SLICE)

    def take(self, rows: Iterable[T]) -> Iterator[list[T]]:
        """The rows in chunks; the caller must run ``rest`` after each chunk."""
        left = iter(rows)
        while taken := list(islice(left, max(self._left, 1))):
            self._left -= len(taken)
            yield taken
            assert self._left > 0, "this turn's slice is done"

    def count(self) -> None:
        """Charge one row to the slice for something built outside ``take``."""
        self._left -= 1

    def rest(self) -> Steps[None]:
        """Yield to a later iteration if this slice is used up."""
        if self._left <= 0:
            self._left = SLICE
            yield

    def encode(
        self, source: Any, path: tuple[str, ...], count: int, rows: Iterable[Any]
    ) -> Steps[Encoded]:
        """Encode the response's array at ``path``: ``count`` ``rows`` shaped like ``source``.

        ``rows`` may be lazy; each row is built when it is encoded.
        """
        context = self._context
        pack_length, write = _find_writer(context.api.key, context.version, source, path)
        slices = [pack_length(count)]
        for taken in self.take(rows):
            parts: list[bytes] = []
            for row in taken:
                write(row, parts.append)
            # Join per slice: a million parts would take long to join and to free.
            slices.append(b"".join(parts))
            yield from self.rest()
        return Encoded(b"".join(slices))


@cache
def _find_writer(
    key: int, version: int, source: Any, path: tuple[str, ...]
) -> tuple[Callable[[int], bytes], Write]:
    return compile_rows_writer(source, response_type(key, version), *path)


def reply_in_slices(context: RequestContext, steps: Steps[Any]) -> None:
    """Reply with the response entity that ``steps`` return; the first slice runs now.

    The others run in later iterations, as long as the connection lives.
    """
    context.run_slices(steps, context.reply)


def handle_in_slices(context: RequestContext, steps: Steps[None]) -> None:
    """As ``reply_in_slices``, for steps that reply themselves."""
    context.run_slices(steps, lambda _: None)


def pace(items: Iterable[T], per_slice: int) -> Iterator[tuple[T, bool]]:
    """Each item, with whether it is the last of its slice."""
    for number, item in enumerate(items, 1):
        yield item, number % per_slice == 0


def select_each(is_meant: Callable[[S], bool], items: Iterable[S]) -> Steps[list[S]]:
    """The items for which ``is_meant``, which may decide by ACLs, in time slices."""
    found = []
    for item, is_slice_done in pace(items, DECISIONS_SLICE):
        if is_meant(item):
            found.append(item)
        if is_slice_done:
            yield
    return found


def compute_each(compute: Callable[[S], T], items: Iterable[S]) -> Steps[list[T]]:
    """Apply ``compute`` to each item, in time slices."""
    found = []
    for item, is_slice_done in pace(items, SLICE):
        found.append(compute(item))
        if is_slice_done:
            yield
    return found
