"""The `range` assignor: each subscriber of a topic gets one contiguous range of it.

Source: org.apache.kafka.coordinator.group.assignor.RangeAssignor of Kafka 4.3.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, HeterogeneousSubscriptions, Ints, Members, Problem


def assign_range(problem: Problem) -> Members:
    """The member of each partition; NOBODY if no member subscribes.

    The n partitions of a topic are split into one range per subscriber, in the members' order; the
    first `n % subscribers` ranges are one longer. Topics with equal partition counts and the same
    subscribers are thereby co-partitioned. Previous owners do not matter: the members' order, that
    is their instance ids, keeps an assignment stable.
    """
    subscriptions = problem.subscriptions
    if isinstance(subscriptions, HeterogeneousSubscriptions):
        return _assign_heterogeneous(problem, subscriptions)
    if problem.members == 0:
        return np.full(problem.partitions, NOBODY, dtype=np.int32)
    counts = problem.partition_counts()
    rank = _range_of_partition(problem.topic_start, counts, np.full_like(counts, problem.members))
    return rank.astype(np.int32)


def _assign_heterogeneous(problem: Problem, subscriptions: HeterogeneousSubscriptions) -> Members:
    subscriber_start, subscriber = subscriptions.by_topic()
    subscribers = np.diff(subscriber_start)
    counts = problem.partition_counts()
    subscribed = np.repeat(subscribers > 0, counts)
    rank = _range_of_partition(problem.topic_start, counts, np.maximum(subscribers, 1))
    position = rank + np.repeat(subscriber_start[:-1], counts)
    target = np.full(problem.partitions, NOBODY, dtype=np.int32)
    target[subscribed] = subscriber[position[subscribed]]
    return target


def _range_of_partition(topic_start: Ints, counts: Ints, ranges: Ints) -> Ints:
    """For each partition, the index of its range within its topic.

    A topic of n partitions has `n % ranges` long ranges of `n // ranges + 1`, then short ones.
    Dividing by the long length gives too small an index for a partition of a short range; dividing
    by the short length, after subtracting one partition per long range, does so for a partition of
    a long one. So the maximum is right for both. The quotients are floats because integer division
    costs ten times as much; they are exact far beyond 2**31 partitions.
    """
    short, longs = np.divmod(counts, ranges)
    local = np.arange(topic_start[-1]) - np.repeat(topic_start[:-1], counts)
    if not short.any():  # never more partitions than ranges: one each
        return local
    in_long = local / np.repeat(short + 1, counts)
    in_short = (local - np.repeat(longs, counts)) / np.repeat(np.maximum(short, 1), counts)
    rank: Ints = np.maximum(in_long, in_short).astype(np.int32).astype(np.int64)
    return rank
