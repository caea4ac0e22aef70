"""Decodes long requests in time slices, between which the event loop runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from coordinator.runtime.loop.slices import Steps
from gateway.codec.decoding import (
    Cursor,
    compile_element_reader,
    compile_parts,
    compile_reader,
    is_number_array,
    read_array_length,
)
from gateway.codec.kio_schema import Field

LEAST_BYTES: Final = 16 * 1024
"""A shorter request is decoded at once."""
SLICE: Final = 2_000
"""Elements decoded in one iteration, a few microseconds each."""
SLICE_BYTES: Final = 200 * SLICE
"""Estimated memory of the decoded elements of one slice."""


def decode_in_slices(entity: Any, data: bytes, pos: int, end: int, elements: int) -> Steps[Any]:
    """As ``gateway.codec.decoding.decode``, in time slices."""
    return (yield from _read(entity, Cursor(data, pos, end, elements), [SLICE]))


def decode_then(
    steps: Steps[Any],
    is_closed: Callable[[], bool],
    on_slice: Callable[[], None],
    done: Callable[[Any, Exception | None], None],
) -> Steps[None]:
    """Run ``steps``, then call ``done`` with (request, ``None``) or (``None``, the exception).

    ``on_slice`` is called after each slice but the last, and may close the connection; decoding
    then stops and ``done`` gets (``None``, ``None``).
    """
    request, error = None, None
    try:
        while not is_closed():
            try:
                next(steps)
            except StopIteration as end:
                request = end.value
                break
            on_slice()
            yield
    except Exception as fault:  # noqa: BLE001 - passed to ``done``, which refuses the connection
        error = fault
    done(request, error)


def _read(entity: Any, cursor: Cursor, left: list[int]) -> Steps[Any]:
    """``left[0]``: how many more elements this slice may decode."""
    defaults, steps, read_tags = compile_parts(entity)
    values = dict(defaults)
    for field, step in steps:
        if field is not None and _is_long(field):
            values[field.name] = yield from _read_array(field, entity.__flexible__, cursor, left)
        else:
            step(cursor, values)
    read_tags(cursor, values)
    return entity(**values)


def _read_array(field: Field, flexible: bool, cursor: Cursor, left: list[int]) -> Steps[Any]:
    length = read_array_length(cursor, field, flexible)
    if length is None:
        return None
    element = compile_element_reader(field, flexible, nullable=False)
    is_deep = field.entity is not None and _has_arrays(field.entity)
    found = []
    for _ in range(length):
        left[0] -= 1
        if left[0] <= 0:
            left[0] = SLICE
            yield
        if is_deep:
            found.append((yield from _read(field.entity, cursor, left)))
        else:
            found.append(element(cursor))
    return tuple(found)


def _is_long(field: Field) -> bool:
    return field.is_array and not is_number_array(field)


@cache
def _has_arrays(entity: Any) -> bool:
    compile_reader(entity)
    return any(field is not None and _is_long(field) for field, _ in compile_parts(entity).steps)
