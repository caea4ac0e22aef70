"""Work that stops after each slice of it, so that its caller can do other things in between."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
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


def take_slices(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in parts of ``size``, after each of which the caller is to stop."""
    part: list[T] = []
    for item in items:
        part.append(item)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
