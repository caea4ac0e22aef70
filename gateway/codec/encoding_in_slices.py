"""Encodes long responses in time slices, between which the event loop runs."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from coordinator.runtime.loop.slices import Steps
from gateway.codec.encoding import (
    Append,
    Encoded,
    Write,
    compile_parts,
    compile_writer,
    pack_length_of,
)
from gateway.codec.kio_schema import Field

FIRST_SLICE: Final = 200
"""Elements encoded at once when the response is ready, whatever the load."""
SLICE: Final = 2_000
"""Elements encoded in a later iteration, a few microseconds each."""


def encode_in_slices(target: Any, entity: Any) -> Steps[bytes]:
    """As ``gateway.codec.encoding.encode``, in time slices."""
    parts: list[bytes] = []
    slices: list[bytes] = []
    for _ in _write(type(entity), target, entity, parts.append, [FIRST_SLICE]):
        # Join per slice: a million parts would take long to join and to free.
        slices.append(b"".join(parts))
        parts.clear()
        yield
    return b"".join((*slices, *parts))


def _write(source: Any, target: Any, entity: Any, append: Append, left: list[int]) -> Steps[None]:
    """``left[0]``: how many more elements this slice may encode."""
    for field, given, write in compile_parts(source, target):
        items = None if field is None or given is None else getattr(entity, field.name)
        if items is None or type(items) is Encoded:
            write(entity, append)
            continue
        assert field is not None
        assert given is not None
        append(pack_length_of(target)(len(items)))
        yield from _write_items(field, given, items, append, left)


def _write_items(
    field: Field, given: Field, items: Any, append: Append, left: list[int]
) -> Steps[None]:
    element, is_deep = _compile_element(given.entity, field.entity)
    for item in items:
        left[0] -= 1
        if left[0] <= 0:
            left[0] = SLICE
            yield
        if is_deep:
            yield from _write(given.entity, field.entity, item, append, left)
        else:
            element(item, append)


@cache
def _compile_element(source: Any, target: Any) -> tuple[Write, bool]:
    """The writer of an element, and whether the element has arrays of entities itself."""
    is_deep = any(field is not None for field, _, _ in compile_parts(source, target))
    return compile_writer(source, target), is_deep
