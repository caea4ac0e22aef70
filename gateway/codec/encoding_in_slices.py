"""An answer of very many elements, encoded in slices between which the loop runs."""

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
"""Elements that are encoded when the answer is made, whatever else goes on."""
SLICE: Final = 2_000
"""Elements that are encoded in a later turn, each in some microseconds."""


def encode_in_slices(target: Any, entity: Any) -> Steps[bytes]:
    """As ``gateway.codec.encoding.encode``."""
    parts: list[bytes] = []
    slices: list[bytes] = []
    for _ in _write(type(entity), target, entity, parts.append, [FIRST_SLICE]):
        # A million of parts would take long to join, and to free.
        slices.append(b"".join(parts))
        parts.clear()
        yield
    return b"".join((*slices, *parts))


def _write(source: Any, target: Any, entity: Any, append: Append, left: list[int]) -> Steps[None]:
    """``left``: how many elements more this turn's slice has."""
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
    """What writes it at once, and whether it has arrays of its own."""
    is_deep = any(field is not None for field, _, _ in compile_parts(source, target))
    return compile_writer(source, target), is_deep
