"""The `uniform` assignor: equal partition counts, with few moves.

Source: org.apache.kafka.coordinator.group.assignor.UniformAssignor of Kafka 4.3.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, HeterogeneousSubscriptions, Members, Problem
from muster.assignors.uniform.uniform_heterogeneous import assign_heterogeneous
from muster.assignors.uniform.uniform_homogeneous import assign_homogeneous


def assign_uniform(problem: Problem) -> Members:
    """The member of each partition; NOBODY if no member subscribes.

    Every partition of a subscribed topic goes to one of its subscribers. The first goal is counts
    as even as the subscriptions allow (with equal subscriptions they differ by at most one), the
    second is as few moves as possible.
    """
    subscriptions = problem.subscriptions
    if not isinstance(subscriptions, HeterogeneousSubscriptions):
        fixed = problem.fixed.partitions if problem.fixed is not None else None
        return assign_homogeneous(problem.members, problem.owner, fixed)
    if not problem.partition_counts()[subscriptions.topic].any():
        return np.full(problem.partitions, NOBODY, dtype=np.int32)
    return assign_heterogeneous(problem, subscriptions)
