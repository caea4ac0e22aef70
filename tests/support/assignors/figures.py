"""Figures of results that depend on racks, weights and rules."""

from __future__ import annotations

from collections import deque

import numpy as np

from muster.assignors.problem import NOBODY, Members, Problem, Racks


def make_racks(of_member: list[int], replicas: list[list[int]]) -> Racks:
    """`replicas`: the racks of each partition's replicas."""
    return Racks(
        np.array(of_member, dtype=np.int64),
        np.cumsum([0, *map(len, replicas)]),
        np.array([rack for racks in replicas for rack in racks], dtype=np.int64),
    )


def local_members(problem: Problem) -> list[set[int]]:
    """For each partition, the members in a rack of its replicas."""
    racks = problem.racks
    assert racks is not None
    start = racks.replica_start
    return [
        {
            member
            for member, rack in enumerate(racks.of_member.tolist())
            if rack in racks.replica[start[partition] : start[partition + 1]].tolist()
        }
        for partition in range(problem.partitions)
    ]


def count_local(problem: Problem, target: Members) -> int:
    """Partitions assigned to a member in a rack of their replicas."""
    local = local_members(problem)
    return sum(member in local[partition] for partition, member in enumerate(target.tolist()))


def compute_most_local(problem: Problem, highest: list[int]) -> int:
    """The maximum number of local partitions if no member exceeds `highest`: a maximum flow.

    Each partition goes to a member in its rack, along a shortest chain of members that pass others
    on. Every member is taken to subscribe to everything.
    """
    local = local_members(problem)
    holder = [NOBODY] * problem.partitions
    has: list[set[int]] = [set() for _ in range(problem.members)]
    return sum(
        _place(partition, local, holder, has, highest) for partition in range(problem.partitions)
    )


def _place(
    partition: int,
    local: list[set[int]],
    holder: list[int],
    has: list[set[int]],
    highest: list[int],
) -> bool:
    came_from: dict[int, int] = dict.fromkeys(local[partition], partition)
    queue = deque(local[partition])
    while queue:
        member = queue.popleft()
        if len(has[member]) < highest[member]:
            while True:
                moved = came_from[member]
                before = holder[moved]
                holder[moved] = member
                has[member].add(moved)
                if before == NOBODY:
                    return True
                has[before].discard(moved)
                member = before
        for other in has[member]:
            for candidate in local[other] - came_from.keys():
                came_from[candidate] = other
                queue.append(candidate)
    return False


def compute_weight_loads(problem: Problem, target: Members) -> list[float]:
    """The weight of each member."""
    assert problem.weights is not None
    taken = target != NOBODY
    weight = problem.weights.of_partition[taken]
    loads: list[float] = np.bincount(target[taken], weight, minlength=problem.members).tolist()
    return loads
