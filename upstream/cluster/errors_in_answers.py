"""Finds the error codes in a response: at the top, or in its parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from gateway.codec.kio_schema import compute_fields

COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
NOT_CONTROLLER: Final = 41
_ELSEWHERE: Final = (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
)


def wants_other_coordinator(answer: Any) -> bool:
    """Whether nothing was done, because the coordinator is elsewhere or not ready."""
    code = None
    for code in _find_codes(answer):
        if code not in _ELSEWHERE:
            return False
    return code is not None


def wants_other_controller(answer: Any) -> bool:
    """Whether the answer, or its first part, says that the controller is elsewhere."""
    return next(_find_codes(answer), 0) == NOT_CONTROLLER


def _find_codes(entity: Any) -> Iterator[int]:
    """The code of an entity with an error; else those of its parts; else its own."""
    own = getattr(entity, "error_code", None)
    if own:
        yield own
        return
    has_parts = False
    kind: Any = type(entity)
    for name in _part_names(kind):
        for part in getattr(entity, name) or ():
            for code in _find_codes(part):
                has_parts = True
                yield code
    if own is not None and not has_parts:
        yield own


@cache
def _part_names(entity: Any) -> tuple[str, ...]:
    """The arrays whose elements have an error code, or parts that do."""
    return tuple(
        row.name
        for row in compute_fields(entity)
        if row.is_array and row.entity is not None and _has_codes(row.entity)
    )


def _has_codes(entity: Any) -> bool:
    names = (row.name for row in compute_fields(entity))
    return "error_code" in names or bool(_part_names(entity))
