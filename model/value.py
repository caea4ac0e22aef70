"""``@value``: a dataclass with slots that nobody changes once it is made.

``dataclass(frozen=True)`` sets each field of a new object through ``object.__setattr__``, which
takes several times as long as making the object; a commit of one offset makes ten such objects.
So that values are not changed is checked where it costs nothing: mypy knows the decorator as
frozen and refuses an assignment to a field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Compared and hashed by its fields, immutable to the type checker."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
