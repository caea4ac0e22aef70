"""The interface of a server-side assignor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muster.assignors.problem import Problem

Assign = Callable[[Problem], object]
"""Compute an assignment: the member of each partition, or the partitions of each member.

Pure and deterministic. `muster.assignors.answer` validates the result.
"""


@dataclass(frozen=True, slots=True)
class Assignor:
    """A server-side assignor and its properties.

    `assign_sets`, if present, assigns sets of partitions as units, whose weights are their
    partition counts. `is_custom`: third-party code, which may never return and may return anything.
    `uses_racks` and `uses_weights`: whether it reads them. `levels_weight`: it balances weight, and
    its target depends on the current owners. `is_search`: it searches even if all members have the
    same subscription, so that the sizes alone do not predict its run time.
    """

    name: str
    assign: Assign
    assign_sets: Assign | None = None
    is_custom: bool = False
    uses_racks: bool = True
    uses_weights: bool = True
    levels_weight: bool = False
    is_search: bool = True
