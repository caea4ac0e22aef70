"""``@value``: a dataclass with slots, immutable to the type checker.

``dataclass(frozen=True)`` sets each field of a new object through ``object.__setattr__``, which
takes several times as long as creating the object; a commit of one offset creates ten of them.
Immutability is checked where it is free: mypy treats the decorator as frozen and refuses to assign
to a field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Compare and hash by fields; immutable to the type checker."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
