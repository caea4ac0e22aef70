"""Co-partitioning: partitions with the same number are assigned as one.

Topics are co-partitioned if they have equal partition counts and the same subscribers. Their
partitions with the same number form a *unit*, which goes to one member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.legality import find_legal
from muster.assignors.problem import (
    NOBODY,
    Flags,
    Floats,
    HeterogeneousSubscriptions,
    Ints,
    Members,
    Problem,
    Racks,
    Subscriptions,
    Weights,
)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """`problem` has units as partitions, and sets of co-partitioned topics as topics."""

    problem: Problem
    unit_of_partition: Ints
    are_uneven: bool
    """Whether units differ in size, and are weighted by size only."""

    def spread(self, target: Members) -> Members:
        """The member of each partition, from that of each unit."""
        return target[self.unit_of_partition]

    def find_split(self, problem: Problem) -> Flags:
        """Per partition of `problem`: whether its unit has several owners or is partly unowned."""
        least = np.full(self.problem.partitions, np.iinfo(np.int32).max, dtype=np.int32)
        most = np.full(self.problem.partitions, NOBODY, dtype=np.int32)
        np.minimum.at(least, self.unit_of_partition, problem.owner)
        np.maximum.at(most, self.unit_of_partition, problem.owner)
        split: Flags = (least != most)[self.unit_of_partition]
        return split

    def gather_pins(self, pinned: Members | None) -> Members | None:
        """The pin of each unit: that of its first pinned partition."""
        if pinned is None:
            return None
        gathered = np.full(self.problem.partitions, NOBODY, dtype=np.int32)
        has_pin = np.flatnonzero(pinned != NOBODY)[::-1]
        gathered[self.unit_of_partition[has_pin]] = pinned[has_pin]
        return gathered


def make_units(problem: Problem) -> Units | None:
    """Combine partitions to units; `None` if no topics are co-partitioned.

    A unit's weight is the sum of its partitions' weights. Its owner is the one that owns most of
    them. It has a replica in a rack if all its partitions do. Without weights, units of different
    sizes are weighted by size.
    """
    set_of_topic, subscriptions = _find_sets(problem)
    sets = int(set_of_topic.max(initial=-1)) + 1
    if sets == problem.topics:
        return None
    counts = problem.partition_counts()
    size = np.bincount(set_of_topic, minlength=sets)
    units_of_set = np.zeros(sets, dtype=np.int64)
    units_of_set[set_of_topic] = counts
    start = np.append(0, np.cumsum(units_of_set))
    local = np.arange(problem.partitions) - np.repeat(problem.topic_start[:-1], counts)
    unit = local + np.repeat(start[set_of_topic], counts)
    inner = Problem(
        start,
        problem.members,
        _find_owners(problem, unit, int(start[-1])),
        subscriptions,
        _gather_racks(problem, unit, np.repeat(size, units_of_set)),
        _gather_weights(problem, unit, size, units_of_set),
    )
    return Units(inner, unit, problem.weights is None and inner.weights is not None)


def _find_sets(problem: Problem) -> tuple[Ints, Subscriptions]:
    """(the set of each topic, the subscriptions to sets)."""
    subscriptions = problem.subscriptions
    counts = problem.partition_counts().tolist()
    keys: list[tuple[int, bytes]]
    if isinstance(subscriptions, HeterogeneousSubscriptions):
        start, member = subscriptions.by_topic()
        ends = start.tolist()
        keys = [
            (count, member[ends[topic] : ends[topic + 1]].tobytes())
            for topic, count in enumerate(counts)
        ]
    else:
        keys = [(count, b"") for count in counts]
    numbers: dict[tuple[int, bytes], int] = {}
    set_of_topic = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    if not isinstance(subscriptions, HeterogeneousSubscriptions):
        return set_of_topic, Subscriptions.all(problem.members, len(numbers))
    entry = subscriptions.member_of_entry() * max(len(numbers), 1)
    entry = np.unique(entry + set_of_topic[subscriptions.topic])
    member, chosen = np.divmod(entry, max(len(numbers), 1))
    member_start = np.searchsorted(member, np.arange(problem.members + 1))
    return set_of_topic, Subscriptions.csr(member_start, chosen, len(numbers))


def _find_owners(problem: Problem, unit: Ints, units: int) -> Members:
    """The owner of most partitions of each unit, the first if several own as many."""
    owner = np.full(units, NOBODY, dtype=np.int32)
    legal = np.flatnonzero(find_legal(problem, problem.owner))
    key = unit[legal] * max(problem.members, 1) + problem.owner[legal]
    found, has = np.unique(key, return_counts=True)
    of_unit, member = np.divmod(found, max(problem.members, 1))
    order = np.lexsort((-member, has))  # the last write wins
    owner[of_unit[order]] = member[order]
    return owner


def _gather_racks(problem: Problem, unit: Ints, size_of_unit: Ints) -> Racks | None:
    racks = problem.racks
    if racks is None:
        return None
    base = max(racks.count, 1)
    width = np.diff(racks.replica_start)
    place = np.repeat(np.arange(problem.partitions), width) * base + racks.replica
    place = np.unique(place)  # a partition counts once per rack
    partition, rack = np.divmod(place, base)
    found, has = np.unique(unit[partition] * base + rack, return_counts=True)
    of_unit, rack = np.divmod(found, base)
    everywhere = has == size_of_unit[of_unit]
    start = np.searchsorted(of_unit[everywhere], np.arange(len(size_of_unit) + 1))
    return Racks(racks.of_member, start, rack[everywhere])


def _gather_weights(problem: Problem, unit: Ints, size: Ints, units_of_set: Ints) -> Weights | None:
    weights = problem.weights
    if weights is None:
        sizes: Floats = np.repeat(size, units_of_set).astype(np.float64)
        is_even = len(sizes) == 0 or bool((sizes == sizes[0]).all())
        return None if is_even else Weights(sizes, skew_limit=0.0)
    gathered = np.zeros(int(units_of_set.sum()))
    np.add.at(gathered, unit, weights.of_partition)
    return Weights(gathered, weights.skew_limit)
