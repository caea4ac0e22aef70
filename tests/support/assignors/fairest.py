"""A slow and simple model of the fairest assignment: a minimum-cost flow, partition by partition.

The cost of a member's k-th partition grows with k, so that the loads become as even as possible. A
partition that stays with its owner is slightly cheaper than one that moves, so that the result has
the fewest moves.
"""

from __future__ import annotations

from muster.assignors.problem import NOBODY, Members, Problem
from tests.support.assignors.cases import subscriber_table

_UNEVEN = 1_000_000


def assign_fairest(problem: Problem) -> list[int]:
    """The member of each partition; loads of minimal sum of squares, then fewest moves."""
    subscribers = subscriber_table(problem)
    topic_of = problem.topic_of_partition().tolist()
    target = [NOBODY] * problem.partitions
    for partition, topic in enumerate(topic_of):
        if subscribers[topic]:
            _assign_one(partition, target, topic_of, subscribers, problem.owner)
    return target


def _assign_one(
    partition: int,
    target: list[int],
    topic_of: list[int],
    subscribers: list[set[int]],
    owner: Members,
) -> None:
    """Assign it along the cheapest chain of members that each pass a partition on."""

    def cost(which: int, member: int) -> int:
        return 0 if owner[which] == member else 1

    cheapest: dict[int, tuple[int, list[tuple[int, int]]]] = {
        member: (cost(partition, member), [(partition, member)])
        for member in subscribers[topic_of[partition]]
    }
    changed = True
    while changed:
        changed = False
        for other, giver in enumerate(target):
            if giver in cheapest:
                so_far, chain = cheapest[giver]
                for member in subscribers[topic_of[other]]:
                    total = so_far + cost(other, member) - cost(other, giver)
                    if member not in cheapest or total < cheapest[member][0]:
                        cheapest[member] = (total, [*chain, (other, member)])
                        changed = True
    load = {member: target.count(member) for member in cheapest}
    best = min(cheapest, key=lambda m: (_UNEVEN * load[m] + cheapest[m][0], m))
    for which, member in cheapest[best][1]:
        target[which] = member
