"""Requests of very many things, and answers of very many rows, in slices.

The loop runs between them.
The first slice is done when the request comes: what is in it does not wait for those that ask for
much. The others take their turns.
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
"""Rows that are made and encoded in one turn, each in some 10 µs."""
FIRST_SLICE: Final = 100
"""The same when the request comes, whatever else goes on."""
COMMANDS_SLICE: Final = 10
"""Commands that are submitted in one turn, each handled in up to a millisecond."""


class LongAnswer:
    """One answer, of rows in as many arrays as there are."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._left = min(FIRST_SLICE, SLICE)

    def take(self, rows: Iterable[T]) -> Iterator[list[T]]:
        """The rows in parts, after each of which ``rest`` is to be called."""
        left = iter(rows)
        while taken := list(islice(left, max(self._left, 1))):
            self._left -= len(taken)
            yield taken
            assert self._left > 0, "this turn's slice is done"

    def count(self) -> None:
        """What was made beside rows counts as one of them."""
        self._left -= 1

    def rest(self) -> Steps[None]:
        """Wait for a later turn if this one's slice is done."""
        if self._left <= 0:
            self._left = SLICE
            yield

    def encode(
        self, source: Any, path: tuple[str, ...], count: int, rows: Iterable[Any]
    ) -> Steps[Encoded]:
        """The array at ``path`` of the answer: ``count`` ``rows``, which are like class ``source``.

        They are made as they are asked for.
        """
        context = self._context
        pack_length, write = _find_writer(context.api.key, context.version, source, path)
        slices = [pack_length(count)]
        for taken in self.take(rows):
            parts: list[bytes] = []
            for row in taken:
                write(row, parts.append)
            # A million of parts would take long to join, and to free.
            slices.append(b"".join(parts))
            yield from self.rest()
        return Encoded(b"".join(slices))


@cache
def _find_writer(
    key: int, version: int, source: Any, path: tuple[str, ...]
) -> tuple[Callable[[int], bytes], Write]:
    return compile_rows_writer(source, response_type(key, version), *path)


def reply_in_slices(context: RequestContext, steps: Steps[Any]) -> None:
    """Answer with what ``steps`` come to, a response entity; its first slice is done now.

    The next ones are in later turns, and none is once the connection is gone.
    """
    context.run_slices(steps, context.reply)


def handle_in_slices(context: RequestContext, steps: Steps[None]) -> None:
    """As ``reply_in_slices``, for steps that see to the answer themselves."""
    context.run_slices(steps, lambda _: None)


def pace(items: Iterable[T], per_slice: int) -> Iterator[tuple[T, bool]]:
    """Each item, and whether this turn's slice is done with it."""
    for number, item in enumerate(items, 1):
        yield item, number % per_slice == 0


def compute_each(compute: Callable[[S], T], items: Iterable[S]) -> Steps[list[T]]:
    """``compute`` of each item, in slices."""
    found = []
    for item, is_slice_done in pace(items, SLICE):
        found.append(compute(item))
        if is_slice_done:
            yield
    return found
