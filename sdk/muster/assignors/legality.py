"""Legal assignments: a partition's member must subscribe to its topic."""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, Flags, HeterogeneousSubscriptions, Members, Problem


def find_legal(problem: Problem, owner: Members) -> Flags:
    """For each partition, whether it has an owner that subscribes to its topic."""
    subscriptions = problem.subscriptions
    owned: Flags = owner != NOBODY
    if not isinstance(subscriptions, HeterogeneousSubscriptions) or not owned.any():
        return owned
    topics = problem.topics
    subscribed = subscriptions.member_of_entry() * topics + subscriptions.topic
    wanted = owner.astype(np.int64) * topics + problem.topic_of_partition()
    found = np.minimum(np.searchsorted(subscribed, wanted), max(len(subscribed) - 1, 0))
    if len(subscribed) == 0:
        return np.zeros_like(owned)
    legal: Flags = owned & (subscribed[found] == wanted)
    return legal
