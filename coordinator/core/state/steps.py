"""Work that stops after each slice of it, so that its caller can do other things in between."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Stops after each slice, and returns what it comes to."""


def run_at_once(steps: Steps[T]) -> T:
    """All slices without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def take_slices(
    items: Iterable[T], size: int, weigh: Callable[[T], int] | None = None
) -> Iterator[list[T]]:
    """The items in parts of ``size``, after each of which the caller is to stop.

    ``weigh`` says as how many an item counts; each as one without it.
    """
    part: list[T] = []
    left = size
    for item in items:
        part.append(item)
        left -= 1 if weigh is None else weigh(item)
        if left <= 0:
            yield part
            part, left = [], size
    if part:
        yield part
