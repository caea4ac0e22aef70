"""The assignors by the names that members ask for and settings list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from assignors.problem import Members, Problem
from assignors.range import assign_range
from assignors.uniform import assign_uniform


@dataclass(frozen=True, slots=True)
class Assignor:
    name: str
    assign: Callable[[Problem], Members]
    """The member of each partition, NOBODY where nobody subscribes. Pure and deterministic."""
    needs_member_order: bool
    """Whether the answer is Kafka's only if members are numbered in Kafka's order. Without it
    any numbering will do that stays the same from one computation to the next."""


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            Assignor("uniform", assign_uniform, needs_member_order=False),
            Assignor("range", assign_range, needs_member_order=True),
        )
    }
)
