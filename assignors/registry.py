"""The assignors by the names that members ask for and settings list."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from assignors.assignor import Assignor
from assignors.rack.rack_assignor import assign_rack
from assignors.range import assign_range
from assignors.uniform.uniform_assignor import assign_uniform
from assignors.weighted.weighted_assignor import assign_weighted
from model.configs.group_configs import BUILT_IN_ASSIGNORS

_ALL = (
    Assignor(
        "uniform",
        assign_uniform,
        assign_sets=assign_weighted,
        uses_racks=False,
        uses_weights=False,
        is_search=False,
    ),
    Assignor("range", assign_range, uses_racks=False, uses_weights=False, is_search=False),
    Assignor("rack", assign_rack, uses_weights=False),
    Assignor("weighted", assign_weighted, uses_racks=False, levels_weight=True),
)

Assignors = Mapping[str, Assignor]

ASSIGNORS: Assignors = MappingProxyType({assignor.name: assignor for assignor in _ALL})

assert tuple(ASSIGNORS) == BUILT_IN_ASSIGNORS, "every assignor here, and no other, may be named"
