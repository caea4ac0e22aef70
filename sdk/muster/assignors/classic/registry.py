"""The classic assignors, by the names that members list when they join."""

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
    """Where a member reports the partitions it owns when it joins."""

    NOTHING = auto()
    USER_DATA = auto()
    SUBSCRIPTION = auto()


@dataclass(frozen=True, slots=True)
class ClassicAssignor:
    """An assignor that the leader of a classic group runs."""

    name: str
    compute: Callable[[NumberedGroup], GroupAssignment]
    """Computes the assignment. Pure and deterministic."""
    owned_in: OwnedIn = OwnedIn.NOTHING
    is_cooperative: bool = False
    """Whether members keep their partitions while they join, and rejoin after revoking some
    (KIP-429)."""


class UnknownAssignorError(ValueError):
    """No assignor has this name."""


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
"""Kafka's assignors. `redundant` takes a number: see `find_assignor`."""

_REDUNDANT = re.compile(r"redundant\(([1-9]\d{0,8})\)", re.ASCII)


def find_assignor(name: str) -> ClassicAssignor:
    """The assignor of that name; ``redundant(n)`` assigns each partition to n members.

    The number is part of the name, so that all members of a group agree on it. Raise
    UnknownAssignorError.
    """
    assignor = CLASSIC_ASSIGNORS.get(name)
    if assignor is not None:
        return assignor
    redundant = _REDUNDANT.fullmatch(name)
    if redundant is None:
        known = ", ".join([*CLASSIC_ASSIGNORS, "redundant(n)"])
        raise UnknownAssignorError(f"unknown assignor {name!r}: use one of {known}")
    compute = partial(compute_redundant, copies=int(redundant[1]))
    return ClassicAssignor(name, compute, OwnedIn.USER_DATA)


def compute_assignment(
    name: str,
    members: Iterable[Member],
    partition_counts: Mapping[str, int],
    replica_racks: Mapping[str, Sequence[Collection[str]]] | None = None,
) -> GroupAssignment:
    """The assignment by the assignor ``name``: member id -> topic -> partitions.

    ``partition_counts`` has the existing topics; subscriptions to others are ignored.
    ``replica_racks``: per topic and partition the racks of its replicas, if known, for `range` and
    the sticky assignors. Raise UnknownAssignorError, and ValueError for a duplicate member id or a
    negative count.
    """
    assignor = find_assignor(name)
    return assignor.compute(number_group(members, partition_counts, replica_racks))
