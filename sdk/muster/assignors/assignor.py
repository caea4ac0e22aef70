"""What an assignor is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muster.assignors.problem import Problem

Assign = Callable[[Problem], object]
"""Answers who gets what: the member of each partition, or for each member its partitions.

Pure and deterministic. See `muster.assignors.answer` for what is made of the answer, and what is
wrong with one.
"""


@dataclass(frozen=True, slots=True)
class Assignor:
    """`assign_sets`, where there is one, assigns partitions that stand for different numbers of
    partitions; their weights say how many. `is_custom`: it is somebody else's, may take for ever
    and answer anything. `uses_racks` and `uses_weights`: whether it looks at those at all.
    `levels_weight`: its target gives members equal weight, and depends on who has what.
    `is_search`: it searches also where all members subscribe to the same topics, so that how long
    it takes is not known from the sizes alone."""

    name: str
    assign: Assign
    assign_sets: Assign | None = None
    is_custom: bool = False
    uses_racks: bool = True
    uses_weights: bool = True
    levels_weight: bool = False
    is_search: bool = True
