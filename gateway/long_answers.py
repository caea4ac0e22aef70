"""Answers of very many rows, which are made and encoded in slices between which the loop runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Any, Final, TypeVar

from coordinator.runtime.slices import Steps
from gateway.api import RequestContext
from gateway.encoding import Encoded, Write, compile_rows_writer
from gateway.schema import response_type

T = TypeVar("T")

SLICE: Final = 1_000
"""Rows that are made and encoded in one turn, each in some 10 µs."""


class LongAnswer:
    """One answer, of rows in as many arrays as there are."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._left = SLICE

    def take(self, rows: Iterable[T]) -> Iterator[list[T]]:
        """The rows in parts, after each of which ``rest`` is to be called."""
        left = iter(rows)
        while taken := list(islice(left, self._left)):
            self._left -= len(taken)
            yield taken
            assert self._left > 0, "this turn's slice is done"

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
        parts = [pack_length(count)]
        for taken in self.take(rows):
            for row in taken:
                write(row, parts.append)
            yield from self.rest()
        return Encoded(b"".join(parts))


@cache
def _find_writer(
    key: int, version: int, source: Any, path: tuple[str, ...]
) -> tuple[Callable[[int], bytes], Write]:
    return compile_rows_writer(source, response_type(key, version), *path)


def reply_in_slices(context: RequestContext, steps: Steps[Any]) -> None:
    """Answer with what ``steps`` come to, a response entity; its first slice is done now.

    The next ones are in later turns, and none is once the connection is gone.
    """
    context.node.slices.run(_reply(context, steps), partial(context.door.fail, context))


def _reply(context: RequestContext, steps: Steps[Any]) -> Steps[None]:
    while not context.closed:
        try:
            next(steps)
        except StopIteration as end:
            context.reply(end.value)
            return
        yield
