"""Work in slices: a generator that pauses after each one, so that the caller can do other work."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Yields after each slice, and returns the result."""


def run_at_once(steps: Steps[T]) -> T:
    """Run all slices without a pause, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def take_slices(
    items: Iterable[T], size: int, weigh: Callable[[T], int] | None = None
) -> Iterator[list[T]]:
    """Split the items into slices of ``size``, after each of which the caller pauses.

    ``weigh`` gives the weight of an item; without it each item weighs 1.
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
