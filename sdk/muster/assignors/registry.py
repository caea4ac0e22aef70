"""The server-side assignors, by the names that members request and settings list."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from muster.assignors.assignor import Assignor
from muster.assignors.names import BUILT_IN_ASSIGNORS
from muster.assignors.rack.rack_assignor import assign_rack
from muster.assignors.range import assign_range
from muster.assignors.uniform.uniform_assignor import assign_uniform
from muster.assignors.weighted.weighted_assignor import assign_weighted

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

assert tuple(ASSIGNORS) == BUILT_IN_ASSIGNORS, "BUILT_IN_ASSIGNORS has other names"
