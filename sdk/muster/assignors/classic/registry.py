"""The classic assignors by the names that members list when they join."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from types import MappingProxyType

from muster.assignors.classic.group import GroupAssignment, Member, NumberedGroup, number_group
from muster.assignors.classic.range import compute_range
from muster.assignors.classic.redundant import compute_redundant
from muster.assignors.classic.roundrobin import compute_roundrobin
from muster.assignors.classic.sticky import compute_cooperative_sticky, compute_sticky


class OwnedIn(Enum):
    """Where members say what they own when they join."""

    NOTHING = auto()
    USER_DATA = auto()
    SUBSCRIPTION = auto()


@dataclass(frozen=True, slots=True)
class ClassicAssignor:
    """An assignor that the leader of a classic group runs."""

    name: str
    compute: Callable[[NumberedGroup], GroupAssignment]
    """Who gets what. Pure and deterministic."""
    owned_in: OwnedIn = OwnedIn.NOTHING
    is_cooperative: bool = False
    """Whether members keep their partitions while they join, and join again when they were told
    to give some up (KIP-429)."""


class UnknownAssignorError(ValueError):
    """There is no assignor of that name."""


CLASSIC_ASSIGNORS: Mapping[str, ClassicAssignor] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            ClassicAssignor("range", compute_range),
            ClassicAssignor("roundrobin", compute_roundrobin),
            ClassicAssignor("sticky", compute_sticky, OwnedIn.USER_DATA),
            ClassicAssignor(
                "cooperative-sticky",
                compute_cooperative_sticky,
                OwnedIn.SUBSCRIPTION,
                is_cooperative=True,
            ),
        )
    }
)
"""Those that Kafka has. `redundant` comes with a number: see `find_assignor`."""

_REDUNDANT = re.compile(r"redundant\(([1-9]\d{0,8})\)", re.ASCII)


def find_assignor(name: str) -> ClassicAssignor:
    """The assignor of that name; ``redundant(n)`` gives each partition to n members.

    The number is part of the name, so that all members of a group agree on it. Raises
    UnknownAssignorError.
    """
    assignor = CLASSIC_ASSIGNORS.get(name)
    if assignor is not None:
        return assignor
    redundant = _REDUNDANT.fullmatch(name)
    if redundant is None:
        known = ", ".join([*CLASSIC_ASSIGNORS, "redundant(n)"])
        raise UnknownAssignorError(f"no assignor is called {name!r}; there are {known}")
    compute = partial(compute_redundant, copies=int(redundant[1]))
    return ClassicAssignor(name, compute, OwnedIn.USER_DATA)


def compute_assignment(
    name: str,
    members: Iterable[Member],
    partition_counts: Mapping[str, int],
    replica_racks: Mapping[str, Sequence[Collection[str]]] | None = None,
) -> GroupAssignment:
    """Who gets what under the assignor ``name``: member id -> topic -> partitions.

    ``partition_counts``: the topics there are; members may subscribe to others, of which nobody
    gets anything. ``replica_racks``: per topic and partition the racks of its replicas, where
    known; `range` and the sticky assignors ask. Raises UnknownAssignorError, and ValueError for
    two members with one id and for a count below 0.
    """
    assignor = find_assignor(name)
    return assignor.compute(number_group(members, partition_counts, replica_racks))
